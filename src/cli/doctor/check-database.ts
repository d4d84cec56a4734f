import type postgres from "postgres";
import { type Clock, sleep, systemClock, withDeadline } from "../../base/clock.ts";
import { lostActsProblem, readLostActs } from "../../cluster/lost-acts.ts";
import type { Config } from "../../config.ts";
import { durabilityProblem, identityProblem, readDurability, standbyProblem } from "../../db/durability.ts";
import { checkMayWrite, checkMigratable, migratedUrl } from "../../db/migrate.ts";
import { checkOwnSession, createConnector, withClient } from "../../db/new-client.ts";
import { noResponseError } from "../../db/outage.ts";
import { createFindings, errorReason, type Finding, type Findings } from "./finding.ts";

const CONNECT_S = 8;
/** Deadline for the first answer: a pooler accepts connections even when it has no server connection left. */
const ANSWER_MS_MAX = 8_000;
const ROUND_TRIPS = 9;
const ROUND_TRIP_MS_WARNING = 10;
const CLOSER =
	"Move the database closer: new keys, credit and the console wait for it; with JOURNAL=remote every answer does.";
/** Deadline for a commit, which usually takes milliseconds for the disk and the standbys. */
const COMMIT_MS_MAX = 5_000;
const COMMIT_MS_WARNING = 500;
/** Oldest supported PostgreSQL version; older ones lack SQL that the schema uses. */
const VERSION_MIN = 14;
/** Most database connections of a gateway that runs batches and stores files in Postgres. */
const CONNECTIONS_OF_GATEWAY = 15;
const CONNECTIONS_OF_CONSOLE = 12;
const OFFSET_MS_WARNING = 2_000;
/** Clock difference that breaks the service: signatures of Stripe's events are valid for five minutes. */
const OFFSET_MS_BROKEN = 120_000;

/** Checks settings and schema of the database, and the clock difference between its machine and this one. Read-only. */
export async function checkDatabase(
	config: Pick<Config, "workers">,
	url: string,
	{ wallMs = Date.now, timer = systemClock }: { wallMs?: () => number; timer?: Clock } = {},
): Promise<readonly Finding[]> {
	const [database, schema, clock] = [createFindings("database"), createFindings("schema"), createFindings("clock")];
	const { ready, end } = createConnector(url, { application_name: "tollgate doctor" }, CONNECT_S)();
	try {
		const client = await withDeadline(timer, ready, ANSWER_MS_MAX, noResponseError);
		const answered = await withDeadline(timer, roundTrips(client, wallMs), ANSWER_MS_MAX, noResponseError);
		await checkSettings(client, { ...config, ...answered, url }, database);
		judgeOffset(answered.offsetMs, clock);
		await checkOwnSession(client, url);
		await checkMayWrite(client);
		await checkSchema(url, schema);
	} catch (error) {
		database.failed(error);
	} finally {
		await end({ timeout: 1 });
	}
	return [...database.list, ...schema.list, ...clock.list];
}

/** Returns the median round trip, and the clock difference measured in the shortest round trip. */
async function roundTrips(client: postgres.Sql, wallMs: () => number) {
	const trips: { tookMs: number; offsetMs: number }[] = [];
	for (let trip = 0; trip < ROUND_TRIPS; trip++) {
		const [startMs, sentMs] = [performance.now(), wallMs()];
		const [row] = await client<{ ms: string }[]>`select (extract(epoch from clock_timestamp()) * 1000)::text as ms`;
		const tookMs = performance.now() - startMs;
		trips.push({ tookMs, offsetMs: Number(row?.ms) - (sentMs + tookMs / 2) });
	}
	trips.sort((a, b) => a.tookMs - b.tookMs);
	const [shortest, median] = [trips[0], trips[ROUND_TRIPS >> 1]] as [(typeof trips)[0], (typeof trips)[0]];
	return { tookMs: median.tookMs, offsetMs: Math.round(shortest.offsetMs) };
}

/** Settings of the connection and the server, as the server reports them. */
export interface DatabaseSettings {
	readonly version: string;
	readonly major: number;
	readonly fsync: string;
	readonly pages: string;
	/** Whether the connection is encrypted; null for a Unix socket. */
	readonly ssl: boolean | null;
	readonly local: boolean;
	readonly freeConnections: number;
}

async function checkSettings(
	client: postgres.Sql,
	own: { workers: number; tookMs: number; url: string },
	found: Findings,
) {
	const [row] = await client<DatabaseSettings[]>`
		select current_setting('server_version') as version, current_setting('server_version_num')::int / 10000 as major,
			current_setting('fsync') as fsync, current_setting('full_page_writes') as pages,
			(select s.ssl from pg_stat_ssl s where s.pid = pg_backend_pid()) as ssl,
			coalesce(inet_server_addr() <<= '127.0.0.0/8' or inet_server_addr() = '::1' or inet_server_addr() = inet_client_addr(), true) as local,
			current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int - (select count(*)::int
				from pg_stat_activity where backend_type = 'client backend' and application_name not like 'tollgate%') as "freeConnections"`;
	const durability = await readDurability(client);
	const lossy = durabilityProblem(durability);
	await checkCommit(own.url, durability, found);
	if (row !== undefined) judgeSettings(row, own, found);
	const unnamed = identityProblem(durability);
	if (unnamed !== undefined)
		found.warn(unnamed, `As a superuser: grant execute on function ${durability.unreadable} to this role.`);
	if (durability.commit === "off") found.broken(lossy ?? "", "Set synchronous_commit = on for this role and database.");
	else if (lossy !== undefined)
		found.warn(lossy, "Name a standby in synchronous_standby_names, with synchronous_commit = on.");
}

/** Measures a commit that writes only to the write-ahead log. Uses its own connection, because the commit may hang. */
async function checkCommit(url: string, durability: Awaited<ReturnType<typeof readDurability>>, found: Findings) {
	const { ready, end, cancel } = createConnector(url, { application_name: "tollgate doctor" }, CONNECT_S)();
	try {
		const client = await ready;
		const startedMs = performance.now();
		const commit = client`select pg_logical_emit_message(true, 'tollgate doctor', '')`.then(() => true);
		const ended = await Promise.race([commit, sleep(systemClock, COMMIT_MS_MAX)]);
		const took = `a commit took ${(performance.now() - startedMs).toFixed(1)} ms`;
		if (ended === undefined) {
			commit.catch(() => {});
			await cancel();
			const lost = standbyProblem({ ...durability, isStuck: durability.waitedFor !== "" });
			found.broken(
				lost ?? `a commit did not end within ${COMMIT_MS_MAX / 1_000} s`,
				"src/ops/failover.md describes it: The synchronous standby does not answer.",
			);
			return;
		}
		const isSlow = performance.now() - startedMs > COMMIT_MS_WARNING;
		found.judge(took, "Look for a slow disk of the database, or a slow synchronous standby.", isSlow);
	} catch (error) {
		found.note(`no commit was timed: ${errorReason(error)}`);
	} finally {
		await end({ timeout: 1 });
	}
}

export function judgeSettings(row: DatabaseSettings, own: { workers: number; tookMs: number }, found: Findings): void {
	const { version, major, fsync, pages, ssl, local, freeConnections } = row;
	const answers = `PostgreSQL ${version} answers in ${own.tookMs.toFixed(1)} ms`;
	if (major < VERSION_MIN) found.broken(`${answers} and is too old`, `Use PostgreSQL ${VERSION_MIN} or later.`);
	else found.judge(answers, CLOSER, own.tookMs > ROUND_TRIP_MS_WARNING);
	const wanted = CONNECTIONS_OF_GATEWAY * own.workers + CONNECTIONS_OF_CONSOLE;
	const free = `${freeConnections} connections are free for Tollgate; this instance may use ${wanted}`;
	found.judge(free, "Raise max_connections, or lower WORKERS.", freeConnections < wanted);
	if (fsync === "off")
		found.broken("fsync is off: a crash of the database machine destroys the books", "Set fsync = on.");
	if (pages === "off")
		found.warn(
			"full_page_writes is off: a crash of the database machine can damage the books",
			"Set full_page_writes = on, unless the file system writes pages atomically.",
		);
	if (ssl === false && !local)
		found.warn(
			"the connection to the database is not encrypted",
			"Add ?sslmode=require to DATABASE_URL, or use a private network.",
		);
}

function judgeOffset(offsetMs: number, found: Findings): void {
	const ms = Math.abs(offsetMs);
	const todo = "Set both by NTP: expiry of keys, times on bills and payment signatures depend on them.";
	const apart = `the clocks of this machine and the database are ${ms} ms apart`;
	found.judge(apart, todo, ms > OFFSET_MS_WARNING, ms > OFFSET_MS_BROKEN);
}

/** Checks whether the next start could use or migrate the schema, without changing it. */
async function checkSchema(url: string, found: Findings): Promise<void> {
	try {
		const migrated = await migratedUrl(url);
		if (migrated !== undefined) {
			const lost = lostActsProblem(await withClient(migrated, async (client) => readLostActs(client)));
			if (lost !== undefined) found.warn(lost, "The operators' page Reconciliation lists them.");
			return found.ok("the schema is up to date");
		}
		await checkMigratable(url);
		found.note("the schema is missing or older: the next start or `tollgate migrate` updates it");
	} catch (error) {
		found.failed(error);
	}
}
