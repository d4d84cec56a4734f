import type { Environment } from "../base/environment-reader.ts";
import type { Log } from "../base/log.ts";
import type { Config } from "../config.ts";
import type { DatabaseSession } from "./database-session.ts";

export interface CommandOutput {
	/** Output of the command with `--json`, printed on one line. */
	readonly json: unknown;
	/** Output without `--json`, without a final line break. */
	readonly text: string;
	/** Exit code of the process; 0 by default. */
	readonly exitCode?: number;
	/** Advice if the output, such as a secret that is shown once, could not be written. */
	readonly ifLost?: string;
}

/** What commands may use. Files and databases are opened only when a command calls the function. */
export interface CommandContext {
	/** Returns the configuration. @throws ConfigError with all problems of the environment. */
	config(): Config;
	readonly env: Environment;
	/** Runs `work` with database clients; starts an embedded database if needed. Fault `not_found` without one. */
	withDatabase<Result>(work: (session: DatabaseSession) => Promise<Result>): Promise<Result>;
	/** Like `withDatabase`, but passes the URL and leaves the schema unchanged. */
	withDatabaseUrl<Result>(work: (url: string) => Promise<Result>): Promise<Result>;
	readonly log: Log;
	/** Prints a line to stderr that is not an error. */
	note(text: string): void;
	/** Replaces the status line of a terminal; "" removes it. Has no effect if stderr is not a terminal. */
	progress(text: string): void;
}

export interface OptionSpec {
	/** Name of the option's value in the help, such as `USD`; undefined for a flag. */
	readonly value?: string;
	readonly required?: true;
	readonly help: string;
}

/** Options and arguments of a command line, unparsed. */
export interface CommandInput {
	option(name: string): string | undefined;
	/** Returns the value of an option that the parser has required. */
	required(name: string): string;
	flag(name: string): boolean;
	/** Returns an argument by its position, which must be one that the command declares. */
	argument(place: number): string;
	optionalArgument(place: number): string | undefined;
}

export interface Command {
	/** Words that call the command, such as `key create`. */
	readonly name: string;
	readonly summary: string;
	/** Names of the arguments; a name in brackets, such as `[MODEL]`, is optional. */
	readonly arguments: readonly string[];
	readonly options: Readonly<Record<string, OptionSpec>>;
	/** True: creates an embedded database if none exists. Other commands fail, because they would find no data. */
	readonly makesDatabase?: boolean;
	readonly details?: string;
	run(context: CommandContext, input: CommandInput): Promise<CommandOutput>;
}

/** Functions of commands by the command's name. `commands.yaml` describes options and help. */
export type CommandRuns = Readonly<Record<string, Command["run"]>>;

/** Error in the command line; the exit code is 2. */
export class UsageError extends Error {
	override readonly name = "UsageError" as const;
}
