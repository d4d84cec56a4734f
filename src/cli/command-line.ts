import { CommanderError, InvalidArgumentError, Option, Command as Program } from "commander";
import { assert } from "../base/assert.ts";
import { PUBLIC_VARIABLES } from "../config-table.ts";
import { type Command, type CommandInput, type OptionSpec, UsageError } from "./command.ts";

/** Result of parsing: a text to print, or a command with its input. */
export type ParsedLine =
	| { readonly kind: "help"; readonly text: string }
	| { readonly kind: "version" }
	| { readonly kind: "command"; readonly command: Command; readonly input: CommandInput };

/** Column at which help texts are wrapped. */
const WIDTH = 100;

/** Parses `argv`, without the program's name, by the table of commands. Prints nothing. @throws UsageError. */
export function readCommandLine(commands: readonly Command[], version: string, argv: readonly string[]): ParsedLine {
	let asked: ParsedLine | undefined;
	let help = "";
	const program = new Program("tollgate")
		.version(version, "--version", "show the version")
		.helpOption("-h, --help", "show help")
		.helpCommand(false)
		.usage("<command> [options]")
		.exitOverride()
		.configureHelp({
			visibleCommands: (of) => of.commands.flatMap(leavesOf),
			subcommandTerm: (of) => pathOf(of),
			subcommandDescription: (of) => of.summary(),
		})
		.configureOutput({
			writeOut: (text) => (help += text),
			writeErr: () => undefined,
			getOutHelpWidth: () => WIDTH,
			getErrHelpWidth: () => WIDTH,
		})
		.addHelpText("after", afterHelp);
	addCommand(program, "serve")
		.summary("run the service (default)")
		.usage("[--role <ROLE>] [--demo-public]")
		.option("--role <ROLE>", "all (default), gateway or console: what this process does; all starts the others")
		.option("--demo-public", "let other machines into the demo, if HOST does")
		.action(() => {
			throw new UsageError("`serve` accepts only --role and --demo-public; the environment configures it");
		});
	for (const command of commands) {
		const leaf = addLeaf(program, command.name, command.summary);
		const options = describe(leaf, command);
		leaf.action(() => {
			asked = { kind: "command", command, input: inputOf(command, options, leaf) };
		});
	}
	addCommand(program, "help").summary("show this help, or the help of a command").usage("[COMMAND]");
	addLeaf(program, "version", "show the version")
		.usage("[options]")
		.action(() => {
			asked = { kind: "version" };
		});
	try {
		program.parse(withoutHelpWord(argv), { from: "user" });
	} catch (error) {
		if (!(error instanceof CommanderError)) throw error;
		if (error.code === "commander.version") return { kind: "version" };
		if (error.code === "commander.help") throw new UsageError(missingText(program, argv));
		if (error.code !== "commander.helpDisplayed") throw new UsageError(error.message.replace(/^error: /, ""));
		const stranger = strangerIn(program, argv);
		if (stranger !== undefined) throw new UsageError(`unknown command '${stranger}'`);
		return { kind: "help", text: help.trimEnd() };
	}
	assert(asked !== undefined, "a command line that is not refused asks for something");
	return asked;
}

/** Rewrites `help key create` to `key create --help`, and an empty command line to `--help`. */
function withoutHelpWord(argv: readonly string[]): string[] {
	if (argv.length === 0) return ["--help"];
	return argv[0] === "help" ? [...argv.slice(1), "--help"] : [...argv];
}

/** Adds a command such as `key create` as the subcommand `create` of `key`. */
function addLeaf(program: Program, name: string, summary: string): Program {
	const leaf = name.split(" ").reduce((at, word) => childOf(at, word) ?? addCommand(at, word), program);
	return leaf.summary(summary).option("--json", "print one line of JSON; errors go to stderr as JSON");
}

function addCommand(parent: Program, word: string): Program {
	return parent.command(word).helpCommand(false).usage("<command> [options]");
}

function childOf(parent: Program, word: string): Program | undefined {
	return parent.commands.find((command) => command.name() === word);
}

function describe(leaf: Program, command: Command): ReadonlyMap<string, Option> {
	const { summary, details, arguments: places, options: specs } = command;
	const sentence = `${summary.charAt(0).toUpperCase()}${summary.slice(1)}.`;
	leaf.description(details === undefined ? sentence : `${sentence}\n\n${details}`);
	const words = places.map((name) => (name.startsWith("[") ? name : `<${name}>`));
	for (const word of words) leaf.argument(word, "", (text: string) => givenValue(leaf, text));
	const options = new Map<string, Option>();
	for (const [name, spec] of Object.entries(specs)) {
		const option = new Option(flagsOf(name, spec), spec.required ? `${spec.help} (required)` : spec.help);
		if (spec.required) option.makeOptionMandatory();
		if (spec.value !== undefined) option.argParser((text) => givenValue(leaf, text));
		options.set(name, option);
		leaf.addOption(option);
	}
	const required = Object.entries(specs).filter(([, spec]) => spec.required);
	leaf.usage([...words, ...required.map(([name, spec]) => flagsOf(name, spec)), "[options]"].join(" "));
	return options;
}

function flagsOf(name: string, spec: OptionSpec): string {
	return spec.value === undefined ? `--${name}` : `--${name} <${spec.value}>`;
}

/** Refuses as a value an option's name (the value was forgotten) and an empty text (a shell variable was unset). */
function givenValue(leaf: Program, text: string): string {
	if (text.trim() === "") throw new InvalidArgumentError("It is empty.");
	if (leaf.options.some(({ long }) => long === text)) throw new InvalidArgumentError("A value is missing before it.");
	return text;
}

function inputOf(command: Command, options: ReadonlyMap<string, Option>, leaf: Program): CommandInput {
	const given: Record<string, unknown> = leaf.opts();
	const read = (name: string) => {
		const option = options.get(name);
		assert(option !== undefined, `\`${command.name}\` has an option --${name}`);
		const value = given[option.attributeName()];
		// Commander stores `--no-wait` as `wait: false`; without the option `wait` is true.
		return option.negate ? value === false : value;
	};
	const option = (name: string) => {
		const value = read(name);
		return typeof value === "string" ? value : undefined;
	};
	const optionalArgument = (place: number) => leaf.args[place];
	return {
		option,
		required(name) {
			const value = option(name);
			assert(value !== undefined, `--${name} is marked as required`);
			return value;
		},
		flag: (name) => read(name) === true,
		argument(place) {
			const value = optionalArgument(place);
			assert(value !== undefined, `\`${command.name}\` has argument ${place}`);
			return value;
		},
		optionalArgument,
	};
}

function leavesOf(command: Program): Program[] {
	return command.commands.length === 0 ? [command] : command.commands.flatMap(leavesOf);
}

function pathOf(command: Program): string {
	return command.parent?.parent ? `${pathOf(command.parent)} ${command.name()}` : command.name();
}

/** Returns the first word before any option that is not a command: help for an unknown command must fail too. */
function strangerIn(program: Program, argv: readonly string[]): string | undefined {
	let at = program;
	for (const word of argv[0] === "help" ? argv.slice(1) : argv) {
		if (word.startsWith("-") || at.commands.length === 0) return undefined;
		const child = childOf(at, word);
		if (child === undefined) return word;
		at = child;
	}
	return undefined;
}

function missingText(program: Program, argv: readonly string[]): string {
	const group = childOf(program, argv[0] ?? "") ?? program;
	return `\`${group.name()}\` takes one of: ${group.commands.map((command) => command.name()).join(", ")}`;
}

function afterHelp({ command }: { command: Program }): string {
	if (command.parent !== null) return "";
	const helper = command.createHelp();
	helper.prepareContext({ helpWidth: WIDTH });
	const width = Math.max(...PUBLIC_VARIABLES.map(({ name }) => name.length));
	const lines = PUBLIC_VARIABLES.map((variable) => {
		const text = variable.default === "" ? variable.meaning : `${variable.meaning} [${variable.default}]`;
		return helper.formatItem(variable.name, width, text, helper);
	});
	return ["", "Exit codes: 0 success, 1 failure, 2 wrong usage.", "", "Environment:", ...lines].join("\n");
}
