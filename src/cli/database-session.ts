import { constants } from "node:os";
import { join } from "node:path";
import { systemClock } from "../base/clock.ts";
import { Fault } from "../base/fault.ts";
import type { Log } from "../base/log.ts";
import type { Config } from "../config.ts";
import { createDatabase, type Database } from "../db/database.ts";
import { embeddedExists, runningEmbeddedUrl, startEmbeddedPostgres } from "../db/embedded.ts";
import { migrate, migratedUrl } from "../db/migrate.ts";
import { isConnectionCut } from "../db/outage.ts";
import { isSignalIgnored } from "./end-signals.ts";

export type DatabaseSession = Pick<Database, "statements" | "liveness" | "url">;

export interface SessionDeps {
	readonly log: Log;
	/** Prints a line to stderr that is not an error. */
	note(text: string): void;
	/** True: creates an embedded database if none exists. */
	readonly makesDatabase: boolean;
	/** Returns a URL for clients if the schema is complete; undefined if migrations must run first. */
	readonly preparedUrl?: ((url: string) => Promise<string | undefined>) | undefined;
}

/** Longer than the service's own deadline, because a check of the books reads the whole ledger. */
const STATEMENT_DEADLINE_MS = 120_000;
const CONNECTIONS_MAX = 2;
const CUT =
	"The connection to the database broke before its answer. The command may have taken effect: check before you repeat it.";
const ENDING_SIGNALS = ["SIGTERM", "SIGINT", "SIGHUP"] as const;

/**
 * Runs `work` with the URL of the configured database. Starts an embedded one that is not running, and stops it
 * afterwards.
 */
export async function withDatabaseUrl<Result>(
	deps: SessionDeps,
	config: Pick<Config, "databaseUrl" | "dataDir">,
	work: (url: string) => Promise<Result>,
): Promise<Result> {
	const url = config.databaseUrl ?? runningEmbeddedUrl(config.dataDir);
	if (url !== undefined) return work(url);
	if (!embeddedExists(config.dataDir)) deps.note(noteOfNone(deps, config.dataDir));
	const signals = ENDING_SIGNALS.filter((signal) => !isSignalIgnored(signal));
	// `process.exit` runs the exit handler, which stops the database. The signal alone would skip the handler.
	const exit = (signal: NodeJS.Signals) => process.exit(128 + constants.signals[signal]);
	for (const signal of signals) process.on(signal, exit);
	try {
		const embedded = await startEmbeddedPostgres(deps, { dataDir: config.dataDir, watched: false });
		return await work(embedded.url).finally(() => embedded.stop());
	} finally {
		for (const signal of signals) process.off(signal, exit);
	}
}

/** Hint for a command in a folder other than the service's, whose DATA_DIR therefore contains no database. */
function noteOfNone({ makesDatabase }: SessionDeps, dataDir: string): string {
	const folder = join(dataDir, "postgres");
	if (makesDatabase) return `there is no database yet: creating an embedded one in ${folder}`;
	throw new Fault(
		"not_found",
		`There is no database in ${folder}. Set DATABASE_URL or DATA_DIR as for the service, or run the command in the service's folder.`,
	);
}

/** Like `withDatabaseUrl`, but passes clients, and the schema is complete. */
export function withDatabase<Result>(
	deps: SessionDeps,
	config: Pick<Config, "databaseUrl" | "dataDir">,
	work: (session: DatabaseSession) => Promise<Result>,
): Promise<Result> {
	return withDatabaseUrl(deps, config, (url) => onDatabase(deps, { url, dataDir: config.dataDir }, work));
}

async function onDatabase<Result>(
	deps: SessionDeps,
	{ url, dataDir }: { readonly url: string; readonly dataDir: string },
	work: (session: DatabaseSession) => Promise<Result>,
): Promise<Result> {
	// A schema of a newer version is left unchanged: migrations only add what is missing.
	const preparedUrl = (await (deps.preparedUrl ?? migratedUrl)(url)) ?? (await migrate(deps, url)).url;
	const database = createDatabase(
		{ clock: systemClock, log: deps.log },
		{
			url: preparedUrl,
			applicationName: "tollgate cli",
			dataDir,
			statementConnectionsMax: CONNECTIONS_MAX,
			statementDeadlineMs: STATEMENT_DEADLINE_MS,
		},
	);
	try {
		return await work(database);
	} catch (error) {
		throw isConnectionCut(error) ? new Fault("service_unavailable", CUT, { cause: error }) : error;
	} finally {
		await database.end();
	}
}
