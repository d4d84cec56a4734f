import type { Environment } from "../base/environment-reader.ts";
import type { Log } from "../base/log.ts";
import type { Config } from "../config.ts";
import type { Command, CommandContext, CommandOutput } from "./command.ts";
import { readCommandLine } from "./command-line.ts";
import { type SessionDeps, withDatabase, withDatabaseUrl } from "./database-session.ts";
import { EXIT_FAILED, EXIT_USAGE, explainError } from "./explain.ts";
import { printable, printableJson, printableLines } from "./printable.ts";

export interface RunDeps {
	readonly commands: readonly Command[];
	readonly version: { readonly version: string; readonly commit: string | null };
	readonly env: Environment;
	loadConfig(): Config;
	readonly log: Log;
	/** Returns a URL for clients if the schema is complete; undefined if migrations must run first. */
	readonly preparedUrl?: SessionDeps["preparedUrl"];
	/** Writes complete lines to stdout; `err` writes them to stderr. */
	out(text: string): void;
	err(text: string): void;
	/** Resolves once all output is written. Returns the error of a failed write. */
	outProblem(): Promise<NodeJS.ErrnoException | undefined>;
	/** Width of the terminal at stderr; null if stderr is not a terminal. */
	readonly columns: number | null;
}

const COLUMNS_DEFAULT = 80;

/** Runs a command other than `serve`; `argv` lacks the program's name. Returns the exit code. Never throws. */
export async function runCommand(deps: RunDeps, argv: readonly string[]): Promise<number> {
	const json = argv.includes("--json");
	const say = (code: string, message: string) =>
		deps.err(`${json ? printableJson({ error: { code, message } }) : printableLines(`error: ${message}`)}\n`);
	try {
		const { exitCode = 0, ...output } = await dispatch(deps, argv);
		deps.out(`${json ? printableJson(output.json) : printableLines(output.text)}\n`);
		const problem = await deps.outProblem();
		if (problem === undefined) return exitCode;
		const done = exitCode === 0 ? ", but the command succeeded" : "";
		// Printed for a nonzero exit code too: if only the wait for instances failed, the secret is valid and lost.
		const lost = output.ifLost === undefined ? "" : `; ${output.ifLost}`;
		say("file", `the output could not be written (${problem.code})${done}${lost}`);
		return exitCode || EXIT_FAILED;
	} catch (error) {
		const { code, message, exitCode } = explainError(error);
		say(code, message);
		if (exitCode === EXIT_USAGE && !json) deps.err("`tollgate help` lists the commands and their options.\n");
		return exitCode;
	}
}

async function dispatch(deps: RunDeps, argv: readonly string[]): Promise<CommandOutput> {
	const asked = readCommandLine(deps.commands, deps.version.version, argv);
	switch (asked.kind) {
		case "help":
			return { json: { help: asked.text }, text: asked.text };
		case "version":
			return { json: deps.version, text: deps.version.version };
		case "command":
			return asked.command.run(contextOf(deps, asked.command), asked.input);
	}
}

function contextOf(deps: RunDeps, { makesDatabase = false }: Command): CommandContext {
	let config: Config | undefined;
	const loaded = () => {
		config ??= deps.loadConfig();
		return config;
	};
	const note = (text: string) => deps.err(`${printableLines(text)}\n`);
	const session = { log: deps.log, note, makesDatabase, preparedUrl: deps.preparedUrl };
	return {
		config: loaded,
		env: deps.env,
		log: deps.log,
		withDatabase: (work) => withDatabase(session, loaded(), work),
		withDatabaseUrl: (work) => withDatabaseUrl(session, loaded(), work),
		note,
		progress(text) {
			// Some terminals report a width of zero.
			if (deps.columns !== null)
				deps.err(`\r\u001b[2K${printable(text).slice(0, (deps.columns || COLUMNS_DEFAULT) - 1)}`);
		},
	};
}
