import type postgres from "postgres";
import { type Clock, systemClock, withDeadline } from "../../base/clock.ts";
import { Fault } from "../../base/fault.ts";
import type { Config } from "../../config.ts";
import { readDurability } from "../../db/durability.ts";
import { checkMigratable, migratedUrl } from "../../db/migrate.ts";
import { newClient } from "../../db/new-client.ts";
import { isPooledByTransaction } from "../../db/pooler.ts";
import { isRefusedSetting, lostSettings, SETTING_NAMES, silent, urlForClients } from "../../db/way.ts";
import { databaseRemedy } from "../database-remedies.ts";
import type { DatabaseServer, DatabaseSettings } from "./database-verdicts.ts";
import { judgeLost, judgeRoundTrip, judgeServer, judgeSessions, judgeSettings } from "./database-verdicts.ts";
import { type Finding, findingsOf, reasonOf } from "./finding.ts";

type Found = ReturnType<typeof findingsOf>;

const CONNECT_S = 8;
const STATEMENT_MS = 10_000;
const ROUND_TRIPS = 20;
/** An instance holds so many; the console's process counts for one. */
const CONNECTIONS_PER_PROCESS = 12;
/** As long as a connection may take: a pooler takes one at once, and may have nobody to answer on it. */
const ANSWER_MS_MAX = 8_000;
const OFFSET_MS_WARNING = 2_000;
/** Signatures of Stripe's events are good for five minutes. */
const OFFSET_MS_BROKEN = 120_000;

/** A pooler has one code for all that it refuses. */
const PASS_ON = `Connect to PostgreSQL itself, or have the pooler pass on what connections begin with: ${SETTING_NAMES}.`;
const TODO_AS_SAID = "Have the owner of the database, or of the tables, do what is said there.";
const TODO_ELSE = "Set DATABASE_URL right, as postgres://user:password@host:5432/database.";

/** Everything that the service wants of its database, and the clock of this machine beside the database's. */
export async function checkDatabase(
	config: Config,
	url: string,
	{ wallMs = Date.now, timer = systemClock }: { wallMs?: () => number; timer?: Clock } = {},
): Promise<readonly Finding[]> {
	const found = findingsOf("database");
	const clock = findingsOf("clock");
	const connect = () =>
		newClient(url, {
			connect_timeout: CONNECT_S,
			onnotice: () => {},
			connection: { application_name: "tollgate doctor", statement_timeout: STATEMENT_MS },
		});
	const client = connect();
	const other = connect();
	try {
		await withDeadline(timer, describeServer(client, found), ANSWER_MS_MAX, silent);
		await measure(client, { found, clock, config, wallMs });
		await checkSettings(client, found);
		await checkConnections(client, config, found);
		const isOwn = await withDeadline(timer, checkSessions(client, other, found), ANSWER_MS_MAX, silent);
		if (isOwn) await checkSchema(url, client, found);
	} catch (error) {
		found.broken(`the database at ${hostOf(url)} cannot be used: ${reasonOf(error)}`, todoOf(error));
	} finally {
		await Promise.all([client.end({ timeout: 1 }), other.end({ timeout: 1 })]);
	}
	return [...found.list, ...clock.list];
}

async function describeServer(client: postgres.Sql, found: Found): Promise<void> {
	const [row] = await client<DatabaseServer[]>`
		select current_setting('server_version') as version, current_setting('server_version_num') as number,
			current_setting('server_encoding') as encoding, (select s.ssl from pg_stat_ssl s where s.pid = pg_backend_pid()) as ssl,
			coalesce(inet_server_addr() <<= '127.0.0.0/8' or inet_server_addr() = '::1' or inet_server_addr() = inet_client_addr(), true) as local`;
	if (row !== undefined) judgeServer(row, found);
}

/** Round trips, and the offset as the shortest of them tells it. */
async function measure(
	client: postgres.Sql,
	{ found, clock, config, wallMs }: { found: Found; clock: Found; config: Config; wallMs: () => number },
) {
	const trips: { tookMs: number; offsetMs: number }[] = [];
	for (let trip = 0; trip < ROUND_TRIPS; trip++) {
		const [startMs, sentMs] = [performance.now(), wallMs()];
		const [row] = await client<{ ms: string }[]>`select (extract(epoch from clock_timestamp()) * 1000)::text as ms`;
		const tookMs = performance.now() - startMs;
		trips.push({ tookMs, offsetMs: Number(row?.ms) - (sentMs + tookMs / 2) });
	}
	trips.sort((a, b) => a.tookMs - b.tookMs);
	judgeRoundTrip((trips[ROUND_TRIPS >> 1] as (typeof trips)[number]).tookMs, config, found);
	const offsetMs = Math.round((trips[0] as (typeof trips)[number]).offsetMs);
	const apart = `this clock and the database's are ${Math.abs(offsetMs)} ms apart`;
	const todo = "Keep both by NTP: expiry of keys, times on bills and signatures of payments go by them.";
	if (Math.abs(offsetMs) > OFFSET_MS_BROKEN) clock.broken(apart, todo);
	else if (Math.abs(offsetMs) > OFFSET_MS_WARNING) clock.warn(apart, todo);
	else clock.ok(apart);
}

async function checkSettings(client: postgres.Sql, found: Found): Promise<void> {
	const [row] = await client<Omit<DatabaseSettings, "durability">[]>`
		select current_setting('fsync') as fsync, current_setting('full_page_writes') as pages,
			current_setting('transaction_read_only') as readonly, pg_is_in_recovery() as standby`;
	if (row !== undefined) judgeSettings({ ...row, durability: await readDurability(client) }, found);
}

async function checkConnections(client: postgres.Sql, { workers }: Config, found: Found): Promise<void> {
	const [row] = await client<{ most: number; others: number }[]>`
		select current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int as most,
			(select count(*)::int from pg_stat_activity where backend_type = 'client backend' and application_name not like 'tollgate%') as others`;
	if (row === undefined) return;
	const wanted = CONNECTIONS_PER_PROCESS * (workers + 1);
	const free = row.most - row.others;
	const said = `${free} connections are free for us, this instance may hold ${wanted}`;
	if (free >= wanted) found.ok(said);
	else found.warn(said, "Raise max_connections, or have fewer WORKERS.");
}

/** Whether what follows can be asked: what is set for a session is there still. */
async function checkSessions(client: postgres.Sql, other: postgres.Sql, found: Found): Promise<boolean> {
	const a = async (statement: string) => [...(await client.unsafe(statement))];
	const b = async (statement: string) => [...(await other.unsafe(statement))];
	const isPooled = await isPooledByTransaction(a, b);
	judgeSessions(isPooled, found);
	return !isPooled;
}

/** As the next start would find it; nothing is changed. */
async function checkSchema(url: string, client: postgres.Sql, found: Found): Promise<void> {
	try {
		judgeLost(await lostSettings(await urlForClients(client, url)), found);
	} catch (error) {
		if (!(error instanceof Fault)) throw error;
		return found.broken(error.message, PASS_ON);
	}
	try {
		if ((await migratedUrl(url)) !== undefined) {
			found.ok("the schema is this version's");
			await checkRefused(client, found);
			return;
		}
		await checkMigratable(url);
	} catch (error) {
		if (!(error instanceof Fault)) throw error;
		const isNewer = error.code === "conflict";
		return found.broken(error.message, isNewer ? "Run the version that the database belongs to." : TODO_AS_SAID);
	}
	found.note(
		"the schema is not there yet, or an older version's: the next start, or `tollgate migrate`, brings it up to date",
	);
}

/** Settlements that nobody was charged for, since requests of their time were removed before their journal came. */
async function checkRefused(client: postgres.Sql, found: Found): Promise<void> {
	const [row] = await client<{ requests: string; instances: string | null }[]>`
		select coalesce(sum(requests), 0)::text as requests, string_agg(distinct instance_id, ', ') as instances from refused_settlement`;
	if (row === undefined || row.requests === "0") return;
	found.warn(
		`${row.requests} settlements came after requests of their time had been removed and were not charged (from ${row.instances})`,
		"Bring journals back sooner, or raise RETENTION_USAGE_DAYS; what they would have cost stands on the operators' page Reconciliation.",
	);
}

function todoOf(error: unknown): string {
	if (isRefusedSetting(error)) return PASS_ON;
	return databaseRemedy(error) ?? TODO_ELSE;
}

/** Without user and password. */
function hostOf(url: string): string {
	const { host, pathname, searchParams } = new URL(url);
	return `${host === "" ? (searchParams.get("host") ?? "") : host}${pathname}`;
}
