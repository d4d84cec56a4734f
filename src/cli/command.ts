import type { Environment } from "../base/environment-reader.ts";
import type { Log } from "../base/log.ts";
import type { Config } from "../config.ts";
import type { DatabaseSession } from "./database-session.ts";

export interface Output {
	/** Output with `--json`, on one line. */
	readonly json: unknown;
	/** Output without `--json`, without the last line end. */
	readonly text: string;
	/** Exit code of the process; 0 by default. */
	readonly exitCode?: number;
	/** Remedy if the output could not be written, for output that is shown only once. */
	readonly ifLost?: string;
}

/** What commands use. Files and databases are opened only when a function is called. */
export interface CommandContext {
	/** @throws ConfigError with all problems of the environment. */
	config(): Config;
	readonly env: Environment;
	/** Runs `work` on the database; starts an embedded one if needed. Fault `not_found` without a database. */
	withDatabase<Result>(work: (session: DatabaseSession) => Promise<Result>): Promise<Result>;
	/** Like `withDatabase`, but does not change the schema. */
	withDatabaseUrl<Result>(work: (url: string) => Promise<Result>): Promise<Result>;
	readonly log: Log;
	/** Prints a line to stderr that reports no error. */
	note(text: string): void;
	/** Shows a status line at a terminal instead of the previous one; "" removes it. No effect without a terminal. */
	progress(text: string): void;
}

export interface OptionSpec {
	/** Name of the option's value in the help, such as `USD`; absent for a flag. */
	readonly value?: string;
	readonly required?: true;
	readonly help: string;
}

/** Options and arguments of a command, as texts. */
export interface CommandInput {
	/** Value of an option; undefined if it is missing. */
	option(name: string): string | undefined;
	/** Value of an option that is required. */
	required(name: string): string;
	flag(name: string): boolean;
	/** Argument by position. The command declares how many it has. */
	argument(place: number): string;
	/** Argument by position; undefined if it is missing. */
	optionalArgument(place: number): string | undefined;
}

export interface Command {
	/** Words that call the command: `key create`. */
	readonly name: string;
	readonly summary: string;
	/** Names of the arguments; one in brackets (`[MODEL]`) is optional. */
	readonly arguments: readonly string[];
	readonly options: Readonly<Record<string, OptionSpec>>;
	/** True: creates an embedded database if there is none. Other commands would find nothing in it. */
	readonly makesDatabase?: boolean;
	readonly details?: string;
	run(context: CommandContext, input: CommandInput): Promise<Output>;
}

/** Functions of the commands by name; `commands.yaml` describes them. */
export type CommandRuns = Readonly<Record<string, Command["run"]>>;

/** Error for a wrong command line: exit code 2. */
export class UsageError extends Error {
	override readonly name = "UsageError" as const;
}
