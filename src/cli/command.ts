import type { Environment } from "../base/environment-reader.ts";
import type { Log } from "../base/log.ts";
import type { Config } from "../config.ts";
import type { DatabaseSession } from "./database-session.ts";

export interface Output {
	/** Printed with `--json`, on one line. */
	readonly json: unknown;
	/** Printed without `--json`; no final line end. */
	readonly text: string;
	/** Default 0. */
	readonly exitCode?: number;
	/** What to do if the output cannot be written, for output that is shown only once. */
	readonly ifLost?: string;
}

/** What a command may use. Nothing is opened before its first use. */
export interface CommandContext {
	/** @throws ConfigError with all problems of the environment. */
	config(): Config;
	readonly env: Environment;
	/** Runs `work` on the database; starts an embedded one if none runs. Fault `not_found` if there is none. */
	withDatabase<Result>(work: (session: DatabaseSession) => Promise<Result>): Promise<Result>;
	/** Like `withDatabase`, but without changing the schema. */
	withDatabaseUrl<Result>(work: (url: string) => Promise<Result>): Promise<Result>;
	readonly log: Log;
	/** Prints a line on stderr that is no error. */
	note(text: string): void;
	/** Shows one line at a terminal, replaced by the next one; "" removes it. Does nothing without a terminal. */
	progress(text: string): void;
}

export interface OptionSpec {
	/** The placeholder of its value in the help, such as `USD`; absent for a flag. */
	readonly value?: string;
	readonly required?: true;
	readonly help: string;
}

/** Options and positional arguments, as texts. */
export interface CommandInput {
	/** The value of a string option; undefined if it was not given. */
	option(name: string): string | undefined;
	/** Like `option`, for an option marked as required. */
	required(name: string): string;
	flag(name: string): boolean;
	/** Positional argument by its place; the command declares how many there are. */
	argument(place: number): string;
	/** Like `argument`, for an optional one. */
	optionalArgument(place: number): string | undefined;
}

export interface Command {
	/** The words that call it: `key create`. */
	readonly name: string;
	readonly summary: string;
	/** Names of positional arguments; one in brackets (`[MODEL]`) is optional. */
	readonly arguments: readonly string[];
	readonly options: Readonly<Record<string, OptionSpec>>;
	/** Creates the embedded database if it is missing. Other commands would find nothing in an empty one. */
	readonly makesDatabase?: boolean;
	readonly details?: string;
	run(context: CommandContext, input: CommandInput): Promise<Output>;
}

/** The code of commands by name; `commands.yaml` describes them. */
export type CommandRuns = Readonly<Record<string, Command["run"]>>;

/** The command line is wrong: exit code 2. */
export class UsageError extends Error {
	override readonly name = "UsageError" as const;
}
