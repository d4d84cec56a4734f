import { parseArgs } from "node:util";
import { assert } from "../base/assert.ts";
import type { Environment } from "../base/environment-reader.ts";
import type { Log } from "../base/log.ts";
import type { Config } from "../config.ts";
import type { Command, CommandContext, CommandInput, Output } from "./command.ts";
import { UsageError } from "./command.ts";
import { withDatabase, withDatabaseUrl } from "./database-session.ts";
import { EXIT_USAGE, explain } from "./explain.ts";
import { formatCommandHelp, formatHelp } from "./help.ts";

export interface RunDeps {
	readonly commands: readonly Command[];
	readonly version: string;
	readonly env: Environment;
	loadConfig(): Config;
	readonly log: Log;
	/** Each gets whole lines. */
	out(text: string): void;
	err(text: string): void;
}

/** Runs one command line (`argv` without the program) other than `serve`. Gives the exit code; never throws. */
export async function runCommand(deps: RunDeps, argv: readonly string[]): Promise<number> {
	const json = argv.includes("--json");
	try {
		const output = await dispatch(deps, argv);
		deps.out(`${json ? JSON.stringify(output.json) : output.text}\n`);
		return output.exitCode ?? 0;
	} catch (error) {
		const { code, message, exitCode } = explain(error);
		deps.err(json ? `${JSON.stringify({ error: { code, message } })}\n` : `error: ${message}\n`);
		if (exitCode === EXIT_USAGE && !json) deps.err("`tollgate help` lists the commands and their options.\n");
		return exitCode;
	}
}

async function dispatch(deps: RunDeps, argv: readonly string[]): Promise<Output> {
	const [first = "help"] = argv;
	if (first === "version" || first === "--version") return { json: { version: deps.version }, text: deps.version };
	if (first === "help" || first === "--help" || first === "-h") return help(deps, argv.slice(1));
	if (first === "serve") {
		if (argv.includes("--help") || argv.includes("-h")) return help(deps, ["serve"]);
		throw new UsageError("`serve` takes no options: it is configured by the environment");
	}
	const command = findCommand(deps.commands, argv);
	if (command === undefined) throw new UsageError(unknownText(deps.commands, argv));
	const rest = argv.slice(command.name.split(" ").length);
	if (rest.includes("--help") || rest.includes("-h")) return help(deps, command.name.split(" "));
	const input = readInput(command, rest);
	return command.run(contextOf(deps), input);
}

function help(deps: RunDeps, argv: readonly string[]): Output {
	const words = argv.filter((word) => !word.startsWith("-"));
	const command = findCommand(deps.commands, words);
	if (command === undefined && words.length > 0 && words[0] !== "serve")
		throw new UsageError(unknownText(deps.commands, words));
	const text = command === undefined ? formatHelp(deps.commands) : formatCommandHelp(command);
	return { json: { help: text }, text };
}

function contextOf(deps: RunDeps): CommandContext {
	let config: Config | undefined;
	const loaded = () => {
		config ??= deps.loadConfig();
		return config;
	};
	return {
		config: loaded,
		env: deps.env,
		log: deps.log,
		withDatabase: (work) => withDatabase(deps, loaded(), work),
		withDatabaseUrl: (work) => withDatabaseUrl(deps, loaded(), work),
		note: (text) => deps.err(`${text}\n`),
	};
}

function findCommand(commands: readonly Command[], argv: readonly string[]): Command | undefined {
	return commands.find(({ name }) => name.split(" ").every((word, place) => argv[place] === word));
}

function unknownText(commands: readonly Command[], argv: readonly string[]): string {
	const similar = commands.filter(({ name }) => name.split(" ")[0] === argv[0]).map(({ name }) => name);
	if (similar.length > 0) return `\`${argv[0]}\` takes one of: ${similar.map((name) => name.split(" ")[1]).join(", ")}`;
	return `there is no command ${JSON.stringify(argv[0])}`;
}

function readInput(command: Command, argv: readonly string[]): CommandInput {
	const options = Object.fromEntries(Object.entries(command.options).map(([name, { type }]) => [name, { type }]));
	const { values, positionals } = parse({ ...options, json: { type: "boolean" } }, argv);
	for (const [name, spec] of Object.entries(command.options)) {
		if (spec.required && values[name] === undefined) throw new UsageError(`--${name} ${spec.value ?? ""} is missing`);
	}
	const needed = command.arguments.filter((name) => !name.startsWith("["));
	const missing = needed[positionals.length];
	if (missing !== undefined)
		throw new UsageError(`\`${command.name}\` takes ${command.arguments.join(" ")}: ${missing} is missing`);
	const extra = positionals[command.arguments.length];
	if (extra !== undefined) throw new UsageError(`\`${command.name}\` does not take ${JSON.stringify(extra)}`);
	const option = (name: string) => {
		assert(name in command.options, `\`${command.name}\` has an option --${name}`);
		const value = values[name];
		return typeof value === "string" ? value : undefined;
	};
	const optionalArgument = (place: number) => positionals[place];
	return {
		option,
		required(name) {
			const value = option(name);
			assert(value !== undefined, `--${name} is marked as required`);
			return value;
		},
		flag: (name) => values[name] === true,
		argument(place) {
			const value = optionalArgument(place);
			assert(value !== undefined, `\`${command.name}\` has argument ${place}`);
			return value;
		},
		optionalArgument,
	};
}

function parse(options: Record<string, { type: "string" | "boolean" }>, argv: readonly string[]) {
	try {
		return parseArgs({ args: [...argv], options, allowPositionals: true, strict: true });
	} catch (error) {
		const { code, message } = error as { code?: string; message: string };
		if (code?.startsWith("ERR_PARSE_ARGS")) throw new UsageError(message);
		throw error;
	}
}
