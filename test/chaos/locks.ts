import postgres from "postgres";
import { revokeKey } from "../../src/keys/key-admin.ts";
import { reconcile } from "../../src/ledger/reconciler.ts";
import { nowMs, waitFor } from "../support/wait.ts";
import { keepSending, type SentRequest, sendChat } from "./chat-client.ts";
import { startCountingUpstream } from "./counting-upstream.ts";
import { areJournalsReplayed, type Fleet, type FleetMember, LEASE_TTL_MS, startFleet } from "./fleet.ts";
import { startOwnPostgres } from "./own-postgres.ts";

/** Effects that are permitted while a table is locked, or a connection is silent, for longer than a lease. */
interface LockTerms {
	/** Gates close when the lease ends and requests get 503; the gates open again after the fault. */
	readonly closesGates?: true;
	/** Revocations wait until the table is unlocked. */
	readonly delaysRevocations?: true;
	readonly why: string;
}

/** A lock on any other table, including future ones, affects no request whose key and credit an instance knows. */
const LOCKED_TABLES: Readonly<Record<string, LockTerms>> = {
	"public.instance_beat": {
		closesGates: true,
		delaysRevocations: true,
		why: "every heartbeat adds a row: without it nobody knows who may admit",
	},
	"public.control_log": {
		closesGates: true,
		delaysRevocations: true,
		why: "every heartbeat reads what is to be applied: who cannot know of a revocation must not admit",
	},
	"public.server_seen": { delaysRevocations: true, why: "a fence asks whether the database is on another server" },
	"public.api_key": { delaysRevocations: true, why: "the key's own row says that it is revoked" },
};

/**
 * If one connection of an instance is silent, it is replaced and no gate closes. A revocation may wait for that
 * instance's next heartbeat or the end of its lease.
 */
const SILENT_CONNECTION: LockTerms = {
	delaysRevocations: true,
	why: "the instance that cannot be reached is waited for, at most for its lease",
};

/** Longest time in milliseconds for a prompt answer, with allowance for other load on the machine. */
const PROMPT_MS = 2_500;

/** Describes the effects that are not permitted. */
function breaches(terms: LockTerms | undefined, seen: Seen): string[] {
	const breached: string[] = [];
	const codes = Object.keys(seen.refused);
	if (seen.served === 0) breached.push("nobody was served");
	if (seen.recoveredMs === undefined) breached.push("it did not come back");
	if (!terms?.closesGates) {
		if (seen.closedMs > 0) breached.push(`a gate was closed for ${seen.closedMs} ms`);
		if (codes.length > 0) breached.push(`refused: ${JSON.stringify(seen.refused)}`);
	} else {
		if (seen.closedMs === 0) breached.push("no gate closed, though nobody could renew a lease");
		const others = codes.filter((code) => code !== "503 service_unavailable");
		if (others.length > 0) breached.push(`refused: ${others.join(", ")}`);
	}
	const late = seen.revocationsMs.filter((ms) => ms === undefined || ms > PROMPT_MS).length;
	if (!terms?.delaysRevocations && late > 0)
		breached.push(`${late} of ${seen.revocationsMs.length} revocations waited`);
	return breached;
}

export interface LockReport {
	readonly what: string;
	readonly seen: Seen;
	readonly breached: readonly string[];
}

export interface LockOptions {
	/** Restricts the run to tables and connections whose name contains this text. */
	only?: string | undefined;
	onReport?: (report: LockReport) => void;
}

/** Milliseconds of a lock: longer than an instance may run without renewing its lease. */
const HELD_MS = 2 * LEASE_TTL_MS;
const RECOVER_MS_MAX = 6 * LEASE_TTL_MS;
const CUSTOMERS = 3;
const REVOCATIONS = 3;

/**
 * Locks each table of the schema, then silences each connection of one instance, for twice a lease while two real
 * instances serve; reports the effects. The tables come from the database's catalogue, so new ones are included.
 */
export async function runLocks(options: LockOptions = {}): Promise<{ reports: LockReport[]; broken: string[] }> {
	const ends: (() => Promise<unknown>)[] = [];
	try {
		const server = await startOwnPostgres();
		ends.push(() => server.destroy());
		const upstream = await startCountingUpstream({ gapMsMax: 1, failures: 0 });
		ends.push(() => upstream.stop());
		const fleet = await startFleet({ databaseUrl: server.url, upstreamUrl: upstream.url, instances: 2 });
		ends.push(() => fleet.stop());
		const locker = postgres(server.url, { max: 1, onnotice: () => {} });
		ends.push(() => locker.end({ timeout: 1 }));
		const traffic = await startTraffic(fleet);
		const reports: LockReport[] = [];
		const isChosen = (name: string) => options.only === undefined || name.includes(options.only);
		const report = (what: string, seen: Seen, breached: readonly string[]) => {
			reports.push({ what, seen, breached });
			options.onReport?.({ what, seen, breached });
		};

		for (const table of (await tablesOf(fleet)).filter(isChosen)) {
			const seen = await watch(fleet, traffic, async (during) => {
				await locker.begin(async (transaction) => {
					await transaction.unsafe(`lock table ${table} in access exclusive mode`);
					await during();
				});
			});
			report(table, seen, breaches(LOCKED_TABLES[table], seen));
		}
		const [member] = fleet.members;
		for (const { name, freeze } of member?.proxy.connections() ?? []) {
			if (!isChosen(`connection ${name}`)) continue;
			const seen = await watch(fleet, traffic, (during) => {
				freeze();
				return during();
			});
			report(`connection ${name}`, seen, breaches(SILENT_CONNECTION, seen));
		}

		await traffic.stop();
		await Promise.all(fleet.members.map((one) => one.stop("SIGINT")));
		const broken = (await reconcile(fleet.statements)).checks.filter(({ ok }) => !ok).map(({ name }) => name);
		if (!areJournalsReplayed(fleet.members)) broken.push("an instance left a journal behind");
		return { reports, broken };
	} finally {
		for (const end of ends.reverse()) await end();
	}
}

async function tablesOf(fleet: Fleet): Promise<string[]> {
	const rows = await fleet.sql<{ name: string }[]>`
		select format('%I.%I', n.nspname, c.relname) as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
		where c.relkind in ('r', 'p') and n.nspname not in ('pg_catalog', 'information_schema') order by 1`;
	return rows.map(({ name }) => name);
}

type Traffic = Awaited<ReturnType<typeof startTraffic>>;
type Seen = Awaited<ReturnType<typeof watch>>;

/** Customers whose keys and credit both instances have in memory, with requests at short intervals. */
async function startTraffic(fleet: Fleet) {
	const keys: { id: string; secret: string }[] = [];
	while (keys.length < CUSTOMERS) keys.push(await fleet.key(await fleet.account()));
	const users = keys.flatMap((key, nth) =>
		fleet.members.map((member) => () => sendChat(member, key, { words: 4, stream: nth % 2 === 0, maxTokens: 30 })),
	);
	const traffic = keepSending(users, () => 40);
	await waitFor(() => isSmooth(traffic.sent, 100), "the traffic to be smooth", 60_000);
	return traffic;
}

const isSmooth = (sent: readonly SentRequest[], last: number) =>
	sent.length >= last && sent.slice(-last).every(({ complete }) => complete);

async function watch(fleet: Fleet, traffic: Traffic, hold: (during: () => Promise<void>) => Promise<void>) {
	const account = await fleet.account();
	const doomed = await Promise.all(Array.from({ length: REVOCATIONS }, () => fleet.key(account)));
	const from = traffic.sent.length;
	/** Milliseconds for which each gate was closed. */
	const closed = fleet.members.map(() => 0);
	/** Durations of revocations in milliseconds; undefined for one that was abandoned. */
	const revocationsMs: (number | undefined)[] = [];
	let holding = true;

	async function watchGates(member: FleetMember, at: number): Promise<void> {
		let lastMs = nowMs();
		while (holding) {
			await Bun.sleep(100);
			const response = await fetch(`${member.url}/readyz`);
			const body = (await response.json()) as { reasons?: string[] };
			const isClosed = response.status !== 200 && body.reasons?.some((reason) => reason.includes("lease"));
			if (isClosed) closed[at] = (closed[at] ?? 0) + Math.round(nowMs() - lastMs);
			lastMs = nowMs();
		}
	}

	async function revokeAll(): Promise<void> {
		for (const key of doomed) {
			const startedMs = nowMs();
			const effective = await revokeKey(fleet.statements, key)
				.then((entry) => fleet.applied(entry, LEASE_TTL_MS))
				.then((result) => result.effective)
				.catch(() => false);
			revocationsMs.push(effective ? Math.round(nowMs() - startedMs) : undefined);
			if (!holding) return;
		}
	}

	let letGoMs = 0;
	const watched: Promise<void>[] = [];
	await hold(async () => {
		watched.push(...fleet.members.map(watchGates), revokeAll());
		await Bun.sleep(HELD_MS);
		letGoMs = nowMs();
	});
	const during = traffic.sent.slice(from);
	const after = traffic.sent.length;
	const recovered = await waitFor(
		() => isSmooth(traffic.sent.slice(after), 30),
		"everybody to be served",
		RECOVER_MS_MAX,
	).then(
		() => true,
		() => false,
	);
	/** Time from the lock's release until every request was served; undefined if that took too long. */
	const recoveredMs = recovered ? Math.round(nowMs() - letGoMs) : undefined;
	holding = false;
	await Promise.all(watched);
	const refused: Record<string, number> = {};
	for (const { status, code, complete } of during) {
		if (!complete) refused[`${status} ${code}`] = (refused[`${status} ${code}`] ?? 0) + 1;
	}
	const served = during.filter(({ complete }) => complete).length;
	return { served, refused, closedMs: Math.max(...closed), revocationsMs, recoveredMs };
}
