import { expect, test } from "bun:test";
import postgres from "postgres";
import { systemClock } from "../../src/base/clock.ts";
import { silentLog } from "../../src/base/log.ts";
import { isDatabaseDown } from "../../src/db/outage.ts";
import { createStatements, type Statements } from "../../src/db/statements.ts";
import type { SettledEvent } from "../../src/ledger/event.ts";
import { createPgLedgerStore } from "../../src/ledger/pg-store.ts";
import { reconcile } from "../../src/ledger/reconciler.ts";
import { needsBusyRow, settleBatch } from "../../src/ledger/settling.ts";
import { InstanceNotLive, LeaseExceeded } from "../../src/ledger/store.ts";
import { withDatabase } from "../support/database.ts";
import { createRandom, type Random } from "../support/random.ts";
import { waitFor } from "../support/wait.ts";
import { giving, goLive, makeAccount, settledEvent, wish } from "./fixture.ts";

const db = await withDatabase();

const SEED = 5;
const LANES = 6;
const ROUNDS = 8;
const STEPS = 5;
const LEASE = 300;
/** Charge of a request that the epoch's batches omit, so it only settles late. No lease was granted as much. */
const FORGOTTEN = 700;
const ACCOUNTS = ["wild-a", "wild-b", "wild-c"];
const MINE = "application_name like 'wild%' and datname = current_database() and state";
/** SQLSTATEs of cancelled, terminated or blocked statements, and of two concurrent late settlements of a request. */
const DONE_TO_IT = new Set(["57014", "57P01", "55P03", "40P01", "23505"]);

interface Epoch {
	readonly id: string;
	readonly number: number;
	readonly events: SettledEvent[];
	readonly forgotten: Set<string>;
	readonly grants: ReturnType<typeof wish>[];
	readonly returns: ReturnType<typeof giving>[];
	readonly acknowledged: Set<string>;
	isOpen: boolean;
}

/** Starts an epoch that will spend or return its grants of all three budgets to the last nano-dollar. */
async function begin(id: string, { int, chance }: Random): Promise<Epoch> {
	const number = await goLive(db, id);
	const events: SettledEvent[] = [];
	const forgotten = new Set<string>();
	const budgets = ACCOUNTS.flatMap((account) => [account, `${account}-key`, `proj_${account}`]);
	const grants = budgets.map((budget) => wish(budget, LEASE));
	await createPgLedgerStore({ statements: db.statements }, id, number).grant(grants);
	const returns: ReturnType<typeof giving>[] = [];
	for (const account of ACCOUNTS) {
		const project = [`proj_${account}`];
		const kept = int(1, 60);
		returns.push(giving(account, kept), giving(`${account}-key`, kept));
		for (let left = LEASE - kept; left > 0; ) {
			const charged = chance(0.2) ? 0 : int(1, left);
			left -= charged;
			events.push(settledEvent(account, `${account}-key`, charged, chance(0.5) ? { budgets: project } : {}));
		}
		if (!chance(0.3)) continue;
		const event = settledEvent(account, `${account}-key`, FORGOTTEN);
		forgotten.add(event.id);
		events.push(event);
	}
	return { id, number, events, forgotten, grants, returns, acknowledged: new Set(), isOpen: true };
}

/** Executes one random statement. It may be rolled back, cancelled or terminated, or its locks may be kept. */
async function step(random: Random, epoch: Epoch, auto: Statements, client: postgres.Sql): Promise<void> {
	const { int, pick, chance, shuffled, fraction } = random;
	const { id, number, events, acknowledged } = epoch;
	const store = createPgLedgerStore({ statements: auto }, id, number);
	const some = shuffled(events).slice(0, chance(0.2) ? 1 : int(1, events.length));
	const batch = shuffled([...some, ...some.filter(() => chance(0.2))]);
	const open = chance(0.4) ? JSON.stringify(shuffled(events).slice(0, 5)) : "[]";
	const kind = fraction();
	if (kind < 0.35) {
		const { held } = await settleBatch(store, batch, open);
		for (const [place, event] of batch.entries()) if (!held.has(place)) acknowledged.add(event.id);
	} else if (kind < 0.6) {
		await client.begin(async (tx) => {
			const statements = tx as unknown as Statements;
			await createPgLedgerStore({ statements }, id, number).flush(batch, open);
			await Bun.sleep(int(0, 20));
			if (chance(0.6)) await tx`select 1 / 0`.catch(() => {});
		});
	} else if (kind < 0.7) {
		const table = pick(["lease", "reservation", "usage_event"]);
		await client.begin(async (tx) => {
			await tx`select 1 from ${tx(table)} where instance_id = ${id} order by random() limit 3 for update skip locked`;
			await Bun.sleep(int(0, 20));
		});
	} else if (kind < 0.8) {
		const ends = chance(0.5) ? "pg_cancel_backend(pid)" : "pg_terminate_backend(pid)";
		await db.sql.unsafe(`select ${ends} from pg_stat_activity
			where application_name = 'wild auto' and ${MINE} = 'active' order by random() limit 1`);
	} else if (kind < 0.9) {
		if (chance(0.5)) await store.grant(shuffled(epoch.grants).map((grant) => ({ ...grant, again: true })));
		else await store.giveBack(shuffled(epoch.returns).slice(0, 3));
	} else if (kind < 0.98) {
		const late = events.find((event) => epoch.forgotten.has(event.id) || !epoch.isOpen);
		if (late) await store.settleLate(JSON.stringify(late));
	} else {
		epoch.isOpen = false;
		await client`select lease_close(${id}, ${number}, false, ${int(1, 4)})`;
	}
}

async function check(epochs: readonly Epoch[]): Promise<void> {
	const rows = await db.sql<{ id: string; charged: number; off: number }[]>`
		select request_id as id, charged_nano_usd::integer as charged, written_off_nano_usd::integer as off from usage_event`;
	const byId = new Map(rows.map((row) => [row.id, row]));
	for (const { events, acknowledged, forgotten, isOpen } of epochs)
		for (const event of events) {
			const row = byId.get(event.id);
			if (acknowledged.has(event.id)) expect(row).toBeDefined();
			if (!row) continue;
			expect(row.charged + row.off).toBe(event.charged);
			if (isOpen && !forgotten.has(event.id)) expect(row.charged).toBe(event.charged);
		}
	const { checks } = await reconcile(db.statements);
	expect(checks.filter(({ ok }) => !ok)).toEqual([]);
	const wrong = await db.sql`
		select b.id from budget b where b.drawn_nano_usd > b.limit_nano_usd or budget_spent(b.id) <> (
			select coalesce(sum(u.charged_nano_usd), 0) from usage_event u where b.id = any (array[u.account_id, u.key_id] || u.budgets))`;
	expect(wrong.length).toBe(0);
}

/** Flushes while other transactions lock rows of the epoch, and checks that the flush does not wait for them. */
async function flushBesideHolders(
	{ id, number, events, forgotten, acknowledged }: Epoch,
	{ int }: Random,
): Promise<void> {
	const hurried = postgres(db.url, { max: 1, fetch_types: false, connection: { lock_timeout: 500 } });
	const store = createPgLedgerStore({ statements: hurried as unknown as Statements }, id, number);
	const batch = events.filter((event) => !forgotten.has(event.id));
	await db.sql.begin(async (tx) => {
		for (const table of ["lease", "reservation", "usage_event"])
			await tx`select 1 from ${tx(table)} where instance_id = ${id} and epoch = ${number} order by random() limit ${int(1, 4)} for update`;
		const { busy } = await store.flush(batch, JSON.stringify(batch.slice(0, 5)));
		for (const event of batch) if (!needsBusyRow(event, busy)) acknowledged.add(event.id);
	});
	await hurried.end();
}

test("random repeated, aborted and cancelled statements count once and never wait", async () => {
	const random = createRandom(SEED);
	for (const account of ACCOUNTS) {
		await makeAccount(db, account, 2_500, { [`${account}-key`]: null });
		await db.sql`insert into budget (id, kind, account_id, limit_nano_usd) values (${`proj_${account}`}, 'project', ${account}, 2500)`;
	}
	const lanes = Array.from({ length: LANES }, () => ({
		random: random.fork(),
		client: postgres(db.url, {
			max: 1,
			fetch_types: false,
			connection: { application_name: "wild", lock_timeout: 100 },
		}),
		auto: createStatements(
			{ clock: systemClock, log: silentLog },
			{
				url: db.url,
				connectionsMax: 1,
				statementDeadlineMs: random.pick([20, 80, 1_000]),
				lockTimeoutMs: random.pick([20, 200]),
				applicationName: "wild auto",
			},
		),
	}));
	const epochs = [await begin("wild-1", random), await begin("wild-2", random)];
	const isOver = async () =>
		(await db.sql.unsafe(`select 1 from pg_stat_activity where ${MINE} <> 'idle'`)).length === 0;
	for (let round = 0; round < ROUNDS; round++) {
		if (round === ROUNDS / 2) epochs.push(await begin("wild-1", random));
		await Promise.all(
			lanes.map(async (lane) => {
				for (let nth = 0; nth < STEPS; nth++)
					await step(lane.random, lane.random.pick(epochs), lane.auto, lane.client).catch((error: unknown) => {
						const code = String((error as { code?: unknown }).code);
						const isKnown = error instanceof LeaseExceeded || error instanceof InstanceNotLive || isDatabaseDown(error);
						if (!isKnown && !DONE_TO_IT.has(code) && code !== "22012") throw error;
					});
			}),
		);
		await waitFor(isOver, "statements that nobody waits for to end");
		await check(epochs);
		for (const epoch of epochs.filter(({ isOpen }) => isOpen)) await flushBesideHolders(epoch, random);
		await check(epochs);
	}
	await Promise.all(lanes.flatMap(({ client, auto }) => [client.end(), auto.end()]));
	for (const epoch of epochs) {
		const store = createPgLedgerStore({ statements: db.statements }, epoch.id, epoch.number);
		expect((await settleBatch(store, epoch.events, "[]")).held.size).toBe(0);
		for (const { id } of epoch.events) epoch.acknowledged.add(id);
		await check(epochs);
		while (!(await store.close()).done);
	}
	await check(epochs);
	expect((await db.sql`select id from budget where drawn_nano_usd <> budget_spent(id)`).length).toBe(0);
}, 60_000);
