import { constants } from "node:os";
import { join } from "node:path";
import { systemClock } from "../base/clock.ts";
import { Fault } from "../base/fault.ts";
import type { Log } from "../base/log.ts";
import type { Config } from "../config.ts";
import { createDatabase, type Database } from "../db/database.ts";
import { isEmbeddedMade, runningEmbeddedUrl, startEmbeddedPostgres } from "../db/embedded.ts";
import { migrate, migratedUrl } from "../db/migrate.ts";
import { withClient } from "../db/new-client.ts";
import { isConnectionCut } from "../db/outage.ts";
import { isIgnored } from "./ignored-signal.ts";

export type DatabaseSession = Pick<Database, "statements" | "liveness" | "url">;

export interface SessionDeps {
	readonly log: Log;
	/** Prints a line on stderr that is no error. */
	note(text: string): void;
	/** Whether a missing embedded database is created. */
	readonly makesDatabase: boolean;
	/** Returns the address for clients if the schema is complete. By default the schema is checked and completed. */
	readonly preparedUrl?: ((url: string) => Promise<string | undefined>) | undefined;
}

/** Longer than a server's deadline, because a reconciliation reads everything. */
const STATEMENT_DEADLINE_MS = 120_000;
const CONNECTIONS_MAX = 2;
const CUT =
	"The connection to the database broke before its answer: it may or may not have done it, so look before you repeat it.";
const ENDING_SIGNALS = ["SIGTERM", "SIGINT", "SIGHUP"] as const;

/**
 * Runs `work` with the address of the configured database. Without DATABASE_URL it uses a running server's embedded
 * database, or starts one and stops it afterwards. A database that a server has begun to use keeps running.
 */
export async function withDatabaseUrl<Result>(
	deps: SessionDeps,
	config: Pick<Config, "databaseUrl" | "dataDir">,
	work: (url: string) => Promise<Result>,
): Promise<Result> {
	const url = config.databaseUrl ?? runningEmbeddedUrl(config.dataDir);
	if (url !== undefined) return work(url);
	if (!isEmbeddedMade(config.dataDir)) deps.note(noteOfNone(deps, config.dataDir));
	const ending = catchEnding();
	try {
		const embedded = await startEmbeddedPostgres(deps, { dataDir: config.dataDir, watched: false });
		if (embedded.adopted) embedded.keepRunning();
		try {
			return await Promise.race([work(embedded.url), ending.told]);
		} finally {
			// After a signal, this command's own statements may still run; they do not count as use by others.
			const isOurs = !embedded.adopted && (ending.isTold() || !(await isUsedByOthers(embedded.url)));
			if (isOurs) await embedded.stop();
			else embedded.keepRunning();
		}
	} finally {
		ending.release();
	}
}

/** A command run in another folder than the service's would search an empty database. */
function noteOfNone({ makesDatabase }: SessionDeps, dataDir: string): string {
	const folder = join(dataDir, "postgres");
	if (makesDatabase) return `there is no database yet: an embedded one is made in ${folder}`;
	throw new Fault(
		"not_found",
		`There is no database in ${folder}: set DATABASE_URL, or DATA_DIR, as the service has it, or run this where it was started.`,
	);
}

/**
 * Defers end signals while an embedded server of this command runs, which would otherwise outlive it. The first signal
 * rejects `told`; `release` then ends the process by that signal. A second signal exits at once.
 */
function catchEnding(): { readonly told: Promise<never>; isTold(): boolean; release(): void } {
	const told = Promise.withResolvers<never>();
	// No caller may be waiting for it yet.
	told.promise.catch(() => {});
	const signals = ENDING_SIGNALS.filter((signal) => !isIgnored(signal));
	let first: NodeJS.Signals | undefined;
	const hear = (signal: NodeJS.Signals) => {
		// Exits with a code: the default action of the signal would skip exit handlers and leave the server running.
		if (first !== undefined) process.exit(128 + constants.signals[signal]);
		first = signal;
		told.reject(new Fault("service_unavailable", `The command was told to end (${signal}).`));
	};
	const endBy = (signal: NodeJS.Signals) => {
		for (const one of signals) process.off(one, hear);
		process.kill(process.pid, signal);
	};
	for (const signal of signals) process.on(signal, hear);
	return {
		told: told.promise,
		isTold: () => first !== undefined,
		release() {
			if (first !== undefined) endBy(first);
			else for (const signal of signals) process.off(signal, hear);
		},
	};
}

/** Like `withDatabaseUrl`, with clients of a database whose schema is complete. */
export function withDatabase<Result>(
	deps: SessionDeps,
	config: Pick<Config, "databaseUrl" | "dataDir">,
	work: (session: DatabaseSession) => Promise<Result>,
): Promise<Result> {
	return withDatabaseUrl(deps, config, (url) => onDatabase(deps, url, work));
}

async function onDatabase<Result>(
	deps: SessionDeps,
	url: string,
	work: (session: DatabaseSession) => Promise<Result>,
): Promise<Result> {
	// A newer server's schema is left unchanged: only missing parts are created.
	const preparedUrl = (await (deps.preparedUrl ?? migratedUrl)(url)) ?? (await migrate(deps, url)).url;
	const database = createDatabase(
		{ clock: systemClock, log: deps.log },
		{
			url: preparedUrl,
			applicationName: "tollgate cli",
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

async function isUsedByOthers(url: string): Promise<boolean> {
	const look: Parameters<typeof withClient<boolean>>[1] = async (client) => {
		const [row] = await client<{ others: boolean }[]>`
			select exists (
				select 1 from pg_stat_activity
				where backend_type = 'client backend' and pid <> pg_backend_pid() and application_name not like 'tollgate cli%'
			) as others`;
		return row?.others ?? false;
	};
	return withClient(url, look, 5).catch(() => true);
}
