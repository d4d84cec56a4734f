import type { Environment } from "../base/environment-reader.ts";
import type { Log } from "../base/log.ts";
import type { Config } from "../config.ts";
import type { DatabaseSession } from "./database-session.ts";

/** What a command prints and how it ends. */
export interface Output {
	/** Printed with `--json`, on one line. */
	readonly json: unknown;
	/** Printed without; no line end at the end. */
	readonly text: string;
	/** Default 0. */
	readonly exitCode?: number;
	/** What to do where it cannot be written, of what is shown this once. */
	readonly ifLost?: string;
}

/** What a command may use. Nothing is opened before it is asked for. */
export interface CommandContext {
	/** Throws ConfigError with all problems of the environment. */
	config(): Config;
	readonly env: Environment;
	/** Runs `work` on the database, beside a running server too; an embedded one is started if none runs. Fault not_found if there is none. */
	withDatabase<Result>(work: (session: DatabaseSession) => Promise<Result>): Promise<Result>;
	/** As `withDatabase`, but leaves the schema as it is. */
	withDatabaseUrl<Result>(work: (url: string) => Promise<Result>): Promise<Result>;
	readonly log: Log;
	/** A line on stderr that is no error. */
	note(text: string): void;
	/** One line at a terminal that the next one replaces; "" takes it away. Nothing where nobody looks. */
	progress(text: string): void;
}

export interface OptionSpec {
	readonly type: "string" | "boolean";
	/** What stands for the value in the help, as `USD`. */
	readonly value?: string;
	readonly required?: true;
	readonly help: string;
}

/** Options and positional arguments, as texts. */
export interface CommandInput {
	/** The value of a string option; undefined if it was not given. */
	option(name: string): string | undefined;
	/** As `option`, for one that the table marks as required. */
	required(name: string): string;
	flag(name: string): boolean;
	/** Positional argument by place; the table says how many there are. */
	argument(place: number): string;
	/** As `argument`, for one that may be missing. */
	optionalArgument(place: number): string | undefined;
}

export interface Command {
	/** Words that call it: `key create`. */
	readonly name: string;
	readonly summary: string;
	/** Names of positional arguments; one in brackets (`[MODEL]`) may be missing. */
	readonly arguments: readonly string[];
	readonly options: Readonly<Record<string, OptionSpec>>;
	/** It makes the embedded database where there is none: the others have nothing to look for in an empty one. */
	readonly makesDatabase?: boolean;
	/** Further sentences for its help. */
	readonly details?: string;
	run(context: CommandContext, input: CommandInput): Promise<Output>;
}

/** The command line itself is wrong: exit code 2. */
export class UsageError extends Error {
	override readonly name = "UsageError" as const;
}
