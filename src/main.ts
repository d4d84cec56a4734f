/** The command line: `serve`, which runs until it is told to stop, and the commands of `cli/`. */
import { relative } from "node:path";
import type { LogLevel } from "./base/log.ts";
import { createLog } from "./base/log.ts";
import { COMMIT, VERSION } from "./base/version.ts";
import { COMMANDS } from "./cli/commands.ts";
import { explain } from "./cli/explain.ts";
import { runCommand } from "./cli/run-command.ts";
import { serve } from "./cli/serve.ts";
import { supervise } from "./cli/supervise.ts";
import type { Config } from "./config.ts";
import { fetchSlotsEnvironment, loadConfig, processEnvironment } from "./config.ts";

const IS_COMPILED = import.meta.dir.startsWith("/$bunfs");

const argv = process.argv.slice(2);
const isServe = argv.length === 0 || (argv.length === 1 && argv[0] === "serve");
await exitWith(isServe ? await runServe() : await runOther());

async function runServe(): Promise<number> {
	growFetchSlots();
	let config: Config;
	try {
		config = loadConfig();
	} catch (error) {
		process.stderr.write(`error: ${explain(error).message}\n`);
		return 1;
	}
	const deps = {
		log: logOf(levelOf(config)),
		out: (text: string) => process.stdout.write(text),
		err: (text: string) => process.stderr.write(text),
		colour: takesColour(process.stdout),
		program: programInShell(),
	};
	// The first run's demo is one process's affair.
	if (config.workers === 1 || config.workerIndex !== null || config.demo) return serve(deps, config);
	return supervise(deps, config, { argv: [process.execPath, ...ownArguments(), "serve"], env: processEnvironment() });
}

function runOther(): Promise<number> {
	const deps = {
		commands: COMMANDS,
		version: { version: VERSION, commit: COMMIT },
		env: processEnvironment(),
		loadConfig,
		log: logOf("warn"),
		out: (text: string) => process.stdout.write(text),
		err: (text: string) => process.stderr.write(text),
	};
	return runCommand(deps, argv);
}

/** The number of concurrent fetches is read before any of our code runs, so the process replaces itself once. */
function growFetchSlots(): void {
	const environment = fetchSlotsEnvironment();
	if (environment === null || process.execve === undefined) return;
	process.execve(process.execPath, [process.execPath, ...ownArguments(), ...argv], environment);
}

/** What stands between the executable and our own arguments: from source, the script. */
function ownArguments(): string[] {
	return IS_COMPILED ? [] : [...process.execArgv, ...process.argv.slice(1, 2)];
}

/** From source, with the runtime that npx fetches: nothing else may be installed on this machine. */
function programInShell(): string {
	if (IS_COMPILED) return process.execPath;
	return `npx --yes bun@${Bun.version} ${relative(process.cwd(), process.argv[1] ?? "")}`;
}

/** Somebody who tries it at a terminal wants the banner, and only what is wrong besides. */
function levelOf(config: Config): LogLevel {
	return config.demo && process.stderr.isTTY === true && !config.env.LOG_LEVEL ? "warn" : config.logLevel;
}

/** Lines for people at a terminal, JSON for everything else. */
function logOf(level: LogLevel) {
	const write = (line: string) => process.stderr.write(`${line}\n`);
	if (process.stderr.isTTY !== true) return createLog({ level, write });
	return createLog({ level, write, terminal: { colour: takesColour(process.stderr) } });
}

function takesColour(stream: NodeJS.WriteStream): boolean {
	return stream.isTTY === true && !processEnvironment().NO_COLOR;
}

/** Ends the process once a slow reader at the other end of a pipe has everything. */
async function exitWith(code: number): Promise<never> {
	await Promise.all(
		[process.stdout, process.stderr].map((stream) => new Promise((resolve) => stream.write("", resolve))),
	);
	process.exit(code);
}
