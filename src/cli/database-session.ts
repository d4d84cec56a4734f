import { constants } from "node:os";
import { join } from "node:path";
import { systemClock } from "../base/clock.ts";
import { Fault } from "../base/fault.ts";
import type { Log } from "../base/log.ts";
import type { Config } from "../config.ts";
import type { Database } from "../db/database.ts";
import { createDatabase } from "../db/database.ts";
import { isEmbeddedMade, runningEmbeddedUrl, startEmbeddedPostgres } from "../db/embedded.ts";
import { migrate, migratedUrl } from "../db/migrate.ts";
import { newClient } from "../db/new-client.ts";
import { isConnectionCut } from "../db/outage.ts";
import { isIgnored } from "./ignored-signal.ts";

export type DatabaseSession = Pick<Database, "statements" | "liveness" | "url">;

export interface SessionDeps {
	readonly log: Log;
	/** A line on stderr that is no error. */
	note(text: string): void;
	/** Whether an embedded database is made where there is none. */
	readonly makesDatabase: boolean;
	/** The address for clients of a database whose schema is there; by default it is looked at, and what is missing is made. */
	readonly preparedUrl?: ((url: string) => Promise<string | undefined>) | undefined;
}

/** Longer than a server's deadline: a reconciliation reads everything. */
const STATEMENT_DEADLINE_MS = 120_000;
const CONNECTIONS_MAX = 2;
const CUT =
	"The connection to the database broke before its answer: it may or may not have done it, so look before you repeat it.";
const ENDING_SIGNALS = ["SIGTERM", "SIGINT", "SIGHUP"] as const;

/**
 * Runs `work` with the address of the configured database. Without DATABASE_URL that is the embedded one of a running
 * server, or one that is started here and stopped afterwards, unless a server has come to use it meanwhile.
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
			// What was told to end may be at it still, which is no use by others.
			const isOurs = !embedded.adopted && (ending.isTold() || !(await isUsedByOthers(embedded.url)));
			if (isOurs) await embedded.stop();
			else embedded.keepRunning();
		}
	} finally {
		ending.release();
	}
}

/** A command in another folder than the service's would look for everything in an empty database. */
function noteOfNone({ makesDatabase }: SessionDeps, dataDir: string): string {
	const folder = join(dataDir, "postgres");
	if (makesDatabase) return `there is no database yet: an embedded one is made in ${folder}`;
	throw new Fault(
		"not_found",
		`There is no database in ${folder}: set DATABASE_URL, or DATA_DIR, as the service has it, or run this where it was started.`,
	);
}

/**
 * Holds back what would end the process while a server of ours runs, which would run on without it. `told` rejects then;
 * `release` ends the process by what it was told. Whoever is told twice ends at once.
 */
function catchEnding(): { readonly told: Promise<never>; isTold(): boolean; release(): void } {
	const told = Promise.withResolvers<never>();
	// Nobody may be waiting for it yet.
	told.promise.catch(() => {});
	const signals = ENDING_SIGNALS.filter((signal) => !isIgnored(signal));
	let first: NodeJS.Signals | undefined;
	const hear = (signal: NodeJS.Signals) => {
		// Not by the signal itself, which would leave that server to run on.
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

/** As `withDatabaseUrl`, with clients of a database whose schema is there. */
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
	// A schema that a newer server laid down is left as it is: only what is missing is made.
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
	const client = newClient(url, { onnotice: () => {}, connect_timeout: 5 });
	try {
		const [row] = await client<{ others: boolean }[]>`
			select exists (
				select 1 from pg_stat_activity
				where backend_type = 'client backend' and pid <> pg_backend_pid() and application_name not like 'tollgate cli%'
			) as others`;
		return row?.others ?? false;
	} catch {
		return true;
	} finally {
		await client.end({ timeout: 1 });
	}
}
