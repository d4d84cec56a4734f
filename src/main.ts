/** Entry point: `serve`, which runs until a signal stops it, and the commands in `cli/`. */
import { relative } from "node:path";
import { systemClock } from "./base/clock.ts";
import type { Environment } from "./base/environment-reader.ts";
import { createLineOutput, type LineOutput } from "./base/line-output.ts";
import { createLog, createLogSwitch, type Log, type LogLevel } from "./base/log.ts";
import { COMMIT, VERSION } from "./base/version.ts";
import { explainError } from "./cli/explain.ts";
import { createPrint, flushOutput } from "./cli/print.ts";
import { runtimeEnvironment } from "./cli/runtime-environment.ts";
import { type Config, loadConfig, processEnvironment } from "./config.ts";

const IS_COMPILED = import.meta.dir.startsWith("/$bunfs");

const argv = process.argv.slice(2);
const out = createPrint(process.stdout);
const err = createPrint(process.stderr);
let logLines: LineOutput | undefined;
const serving = serveArguments(argv);
process.exit(serving === undefined ? await runOther() : await runServe(serving));

/** Returns the environment for `serve [--role ROLE] [--demo-public]`; undefined for other commands. */
function serveArguments(words: readonly string[]): Environment | undefined {
	const [command = "serve", ...options] = words;
	if (command !== "serve") return undefined;
	const rest = options.filter((word) => word !== "--demo-public");
	const environment = { ...processEnvironment(), ...(rest.length < options.length ? { DEMO_PUBLIC: "1" } : {}) };
	const role = /^--role(?: (.*)|=(.*))?$/.exec(rest.join(" "));
	if (rest.length === 0) return environment;
	if (role === null || rest.length > 2) return undefined;
	// An empty role becomes "none", which is refused. An empty ROLE variable would count as unset.
	return { ...environment, ROLE: role[1] || role[2] || "none" };
}

async function runServe(env: Environment): Promise<number> {
	const exitCode = await serveAsAsked(env);
	const said = Promise.all([out.problem(), err.problem(), logLines?.flushed()]);
	await flushOutput(systemClock, said, () => logLines?.unread() ?? 0);
	return exitCode;
}

async function serveAsAsked(env: Environment): Promise<number> {
	let config: Config;
	try {
		config = loadConfig(env);
	} catch (error) {
		err.text(`error: ${explainError(error).message}\n`);
		return 1;
	}
	if (config.role === "gateway") setUpRuntime();
	const logSwitch = createLogSwitch(levelOf(config));
	const deps = {
		logSwitch,
		log: logOf(logSwitch.level).with({ process: processName(config) }),
		out: out.text,
		err: err.text,
		colour: takesColour(process.stdout),
		program: programInShell(),
	};
	// Imports only the code of this process's role, so that it cannot leak secrets of other processes.
	if (config.role === "all") {
		const { supervise } = await import("./cli/supervise.ts");
		return supervise(deps, config, { argv: [process.execPath, ...ownArguments(), "serve"], env });
	}
	const { serve } = await import("./cli/serve.ts");
	return serve(deps, config);
}

/** Returns the process's name for log lines, because several processes write to one log. */
function processName({ role, workerIndex }: Pick<Config, "role" | "workerIndex">): string {
	if (role === "all") return "parent";
	return workerIndex === null ? role : `${role}-${workerIndex}`;
}

async function runOther(): Promise<number> {
	const { COMMANDS } = await import("./cli/commands.ts");
	const { runCommand } = await import("./cli/run-command.ts");
	const deps = {
		commands: COMMANDS,
		version: { version: VERSION, commit: COMMIT },
		env: processEnvironment(),
		loadConfig,
		log: logOf("warn"),
		out: out.text,
		err: err.text,
		outProblem: out.problem,
		columns: process.stderr.isTTY === true ? process.stderr.columns : null,
	};
	const exitCode = await runCommand(deps, argv);
	await Promise.all([err.problem(), logLines?.flushed()]);
	return exitCode;
}

/** Restarts this program with the runtime's variables set: Bun reads them before it runs any code. */
function setUpRuntime(): void {
	const environment = runtimeEnvironment(processEnvironment());
	if (environment === null || process.execve === undefined) return;
	process.execve(process.execPath, [process.execPath, ...ownArguments(), ...argv], environment);
}

/** Arguments between the executable and this program's own; from source the script's path. */
function ownArguments(): string[] {
	if (IS_COMPILED) return [];
	// Omits `--watch`: the parent process restarts everything, and a watching child would restart twice.
	const flags = process.execArgv.filter((flag) => flag !== "--watch" && flag !== "--hot");
	return [...flags, ...process.argv.slice(1, 2)];
}

/** Returns the shell command for this program. From source it uses `npx`, because Bun may not be installed. */
function programInShell(): string {
	if (IS_COMPILED) return process.execPath;
	return `npx --yes bun@${Bun.version} ${relative(process.cwd(), process.argv[1] ?? "")}`;
}

/** The demo at a terminal logs only warnings and errors, so that the banner stays visible. */
function levelOf(config: Pick<Config, "demo" | "env" | "logLevel">): LogLevel {
	return config.demo && process.stderr.isTTY === true && !config.env.LOG_LEVEL ? "warn" : config.logLevel;
}

/** Creates the log, which writes text at a terminal and JSON otherwise. */
function logOf(level: LogLevel | (() => LogLevel)): Log {
	const output = createLineOutput(
		(piece, written) => process.stderr.write(piece, written),
		(lines) => log.warn("lines of the log were lost", { lines }),
	);
	logLines = output;
	const terminal = process.stderr.isTTY === true ? { colour: takesColour(process.stderr) } : undefined;
	const log = createLog({ level, write: output.write, ...(terminal === undefined ? {} : { terminal }) });
	return log;
}

function takesColour(stream: NodeJS.WriteStream): boolean {
	return stream.isTTY === true && !processEnvironment().NO_COLOR;
}
