import baseline from "./0000_baseline.sql" with { type: "text" };

export interface Migration {
	readonly name: string;
	readonly sql: string;
	/** The version before this one cannot work on what it leaves: all instances are stopped for it. */
	readonly breaking?: true;
}

/** All migrations in order, embedded so that the binary carries them. A test compares the list with the folder. */
export const migrations: readonly Migration[] = [{ name: "0000_baseline", sql: baseline, breaking: true }];
