import { expect, test } from "bun:test";
import { newUuid } from "../../src/base/id.ts";
import { SettledColumns } from "../../src/ledger/event.ts";
import { createPgLedgerStore } from "../../src/ledger/pg-store.ts";
import { reconcile } from "../../src/ledger/reconciler.ts";
import { InstanceNotLive, type LedgerStore } from "../../src/ledger/store.ts";
import { withDatabase } from "../support/database.ts";
import { lockWaits } from "../support/lock-waits.ts";
import { openTransaction } from "../support/open-transaction.ts";
import { SET_AUTO_PLANS } from "../support/postgres.ts";
import { waitFor } from "../support/wait.ts";
import { giving, goLive, makeAccount, retrying, settledEvent, usd, wish } from "./fixture.ts";

const db = await withDatabase();

const storeOf = (id: string) => retrying(createPgLedgerStore({ statements: db.ledger }, id, 1));
const repeat = <T>(count: number, work: (n: number) => Promise<T>) =>
	Promise.all(Array.from({ length: count }, (_, n) => work(n)));

test("concurrent flushes, grants and returns of many instances do not deadlock", async () => {
	const accounts = Array.from({ length: 6 }, (_, n) => `d${n}`);
	for (const account of accounts) await makeAccount(db, account, 1_000_000, { [`${account}-key`]: null });
	const ids = ["d-1", "d-2", "d-3", "d-4"];
	for (const id of ids) await goLive(db, id);
	const shuffled = (n: number) =>
		[...accounts.slice(n % 6), ...accounts.slice(0, n % 6)].toSorted(() => (n % 2 ? 1 : -1));
	const all = async (n: number) => {
		const store = storeOf(ids[n % 4] as string);
		const budgets = shuffled(n);
		const ops = budgets.map((budget) => wish(budget, 100, 1));
		await store.grant([...ops, ...budgets.map((budget) => wish(`${budget}-key`, 100, 1))]);
		const events = budgets.map((account) => settledEvent(account, `${account}-key`, 10));
		await Promise.all([
			store.flush(events, "[]"),
			store.giveBack(budgets.map((budget) => giving(budget, 5))),
			store.grant(budgets.map((budget) => wish(budget, 50, 1))),
		]);
	};
	// Runs twelve calls at a time, about as many as there are connections; waiting for a connection would time out.
	for (let from = 0; from < 120; from += 12) await repeat(12, (n) => all(from + n));
	const [row] =
		await db.sql`select sum(settled_nano_usd) as settled from lease where instance_id like 'd-%' and budget_id like '%-key'`;
	expect(Number(row?.settled)).toBe(120 * 6 * 10);
});

test("closing leases during grants, returns and flushes keeps the books correct", async () => {
	await makeAccount(db, "c", 10_000, { "c-key": 5_000 });
	for (let round = 0; round < 8; round++) {
		const id = `c-${round}`;
		await goLive(db, id);
		const store = storeOf(id);
		const ask = (budget: string) => wish(budget, 200, 1);
		await store.grant([ask("c"), ask("c-key")]);
		const event = settledEvent("c", "c-key", 20);
		const settle = async () => {
			if ((await store.flush([event], "[]")).late) await store.settleLate(JSON.stringify(event));
		};
		await Promise.all([
			store.close(),
			store.close(),
			settle(),
			settle(),
			store.giveBack([giving("c", 30)]),
			store.grant([ask("c")]).catch(() => {}),
		]);
		await settle();
	}
	const [row] = await db.sql`select sum(charged_nano_usd) as charged, count(*) from usage_event where account_id = 'c'`;
	expect([Number(row?.charged), Number(row?.count)]).toEqual([160, 8]);
	const [budget] = await db.sql`select drawn_nano_usd as drawn from budget where id = 'c'`;
	expect(Number(budget?.drawn)).toBe(160);
});

test("a refused grant is not final while an earlier epoch may return credit", async () => {
	await makeAccount(db, "e", 100, {});
	await goLive(db, "e-gone");
	await goLive(db, "e-asks");
	await storeOf("e-gone").grant([wish("e", 100)]);
	const unanswered = async () => {
		const [reply] = await storeOf("e-asks").grant([wish("e", 10)]);
		expect(reply?.amount).toBe(usd(0));
		return reply?.unanswered;
	};
	const stands = (state: string) =>
		db.sql`select instance_stand('e-gone', 1, null, array['live', 'dead'], ${state}, null, null)`;
	await stands("dead");
	// A dead instance's credit stays reserved but is not counted in `unanswered`: its journal may never be replayed.
	expect(await unanswered()).toBe(0);
	await goLive(db, "e-gone");
	expect(await unanswered()).toBe(1);
	await db.sql`select instance_stand('e-gone', 2, null, array['live'], 'dead', null, null)`;
	expect(await unanswered()).toBe(0);
	await stands("closing");
	expect(await unanswered()).toBe(1);
	expect(await storeOf("e-gone").close()).toEqual({ closed: 1, done: true });
	const [reply] = await storeOf("e-asks").grant([wish("e", 10)]);
	expect(reply?.amount).toBe(usd(10));
});

/**
 * Sends a statement while another transaction is open. Returns its outcome, and whether it waited for that transaction.
 */
async function beside(
	uncommitted: string,
	send: () => Promise<unknown>,
): Promise<{ waited: boolean; outcome: unknown }> {
	const commit = await openTransaction(db.sql, (sql) => sql.unsafe(uncommitted));
	let over = false;
	const sent = send().catch((error: unknown) => error);
	void sent.then(() => (over = true));
	let waited = false;
	await waitFor(async () => {
		waited ||= (await lockWaits(db.sql)) > 0 && !over;
		return waited || over;
	}, "the statement to wait or to end");
	await commit();
	return { waited, outcome: await sent };
}

/** Runs a statement that must not wait. Resolves to its SQLSTATE, which is "57014" if it waited for a lock. */
const promptly = (statement: string): Promise<unknown> =>
	db.sql
		.begin(async (sql) => {
			await sql.unsafe("set local statement_timeout = 2000");
			await sql.unsafe(statement);
		})
		.then(
			() => undefined,
			(error) => error.code,
		);

test("a booking waits for an uncommitted booking with the same reference", async () => {
	await makeAccount(db, "b3", 0, {});
	await makeAccount(db, "b4", 0, {});
	const { waited, outcome } = await beside(
		`select ledger_book('${newUuid()}', 'b3', 'top_up', 50, 'ref-2', 'test', '', false)`,
		async () => {
			const [row] = await db.statements<{ seq: string | null }>`
				select ledger_book(${newUuid()}, 'b4', 'top_up', 50, 'ref-2', 'test', '', false) as seq`;
			return row?.seq;
		},
	);
	expect([waited, outcome]).toEqual([true, null]);
	const rows = await db.sql`select limit_nano_usd::integer as credit from budget where id in ('b3', 'b4') order by id`;
	expect(rows.map(({ credit }) => credit)).toEqual([50, 0]);
});

test("grants, returns and flushes wait for an uncommitted closing of leases", async () => {
	const event = settledEvent("n", "n-key", 20);
	const statements: Record<string, (store: LedgerStore) => Promise<unknown>> = {
		grant: (store: LedgerStore) => store.grant([wish("n", 50)]),
		flush: (store: LedgerStore) => store.flush([event], "[]"),
		giveBack: (store: LedgerStore) => store.giveBack([giving("n", 10)]),
	};
	await makeAccount(db, "n", 1_000, { "n-key": null });
	for (const [name, statement] of Object.entries(statements)) {
		await goLive(db, `n-${name}`);
		const store = storeOf(`n-${name}`);
		await store.grant([wish("n", 100), wish("n-key", 100)]);
		const { waited, outcome } = await beside(`select lease_close('n-${name}', 1, false, 10)`, () => statement(store));
		expect([name, waited]).toEqual([name, true]);
		if (name === "grant") expect(outcome).toBeInstanceOf(InstanceNotLive);
		else expect(outcome).toEqual(name === "flush" ? { late: true, fresh: 0, busy: new Set() } : new Set());
		expect((await db.sql`select 1 from lease where instance_id = ${`n-${name}`} and state = 'open'`).length).toBe(0);
	}
	const [budget] = await db.sql`select drawn_nano_usd as drawn from budget where id = 'n'`;
	expect(Number(budget?.drawn)).toBe(0);
});

test("a delayed flush does not record a settled request as running", async () => {
	await makeAccount(db, "w", 1_000, { "w-key": null });
	await goLive(db, "w");
	const store = storeOf("w");
	await store.grant([wish("w", 100), wish("w-key", 100)]);
	const event = settledEvent("w", "w-key", 20);
	const none = Object.keys(new SettledColumns().literals()).map(() => "'{}'");
	const { waited } = await beside(`select lease_settle('w', 1, ${none.join()}, '${JSON.stringify([event])}')`, () =>
		store.flush([event], "[]"),
	);
	expect(waited).toBe(true);
	expect((await db.sql`select 1 from reservation where instance_id = 'w'`).length).toBe(0);
	expect((await db.sql`select 1 from usage_event where account_id = 'w'`).length).toBe(1);
});

test("two concurrent late settlements share the available credit", async () => {
	await makeAccount(db, "t", 100, { "t-key": null });
	await goLive(db, "t");
	await storeOf("t").close();
	const [first, second] = [1, 2].map(() => JSON.stringify(settledEvent("t", "t-key", 80)));
	await db.sql.begin(async (holder) => {
		await holder.unsafe(`select ledger_settle_late('t', 1, '${first}')`);
		expect(await promptly(`select ledger_settle_late('t', 1, '${second}')`)).toBe("55P03");
	});
	await createPgLedgerStore({ statements: db.statements }, "t", 1).settleLate(second ?? "");
	const rows =
		await db.sql`select charged_nano_usd as charged, written_off_nano_usd as off from usage_event where account_id = 't' order by 1`;
	expect(rows.map((row) => [Number(row.charged), Number(row.off)])).toEqual([
		[20, 60],
		[80, 0],
	]);
});

test("a late settlement is recorded without waiting for locked rows", async () => {
	await makeAccount(db, "u", 1_000, { "u-key": null });
	await goLive(db, "u");
	const store = storeOf("u");
	await store.grant([wish("u", 100), wish("u-key", 100)]);
	const event = settledEvent("u", "u-key", 20);
	await store.flush([], JSON.stringify([event]));
	// Inserts a row as an operator's attestation does, which a late settlement would replace.
	await db.sql`
		insert into usage_event (request_id, account_id, key_id, instance_id, epoch, model, rate_card_id, endpoint, streamed,
			reserved_nano_usd, charged_nano_usd, written_off_nano_usd, basis, ending, status, prompt_tokens, cached_tokens,
			completion_tokens, reasoning_tokens, units, admitted_at, duration_ms)
		values (${event.id}, 'u', 'u-key', 'u', 1, 'm', '', 'chat', true, 20, 0, 0, 'recovered', 'crashed', 500, 0, 0, 0, 0, 0, now(), 0)`;
	for (const held of [
		"budget where id = 'u'",
		"budget where id = 'u-key'",
		"lease where budget_id = 'u'",
		"lease where budget_id = 'u-key'",
		"usage_event where account_id = 'u'",
		"reservation where account_id = 'u'",
	]) {
		await db.sql.begin(async (holder) => {
			expect([held, (await holder.unsafe(`select 1 from ${held} for update`)).length]).toEqual([held, 1]);
			const code = await promptly(`select ledger_settle_late('u', 1, '${JSON.stringify(event)}')`);
			expect([held, code]).toEqual([held, "55P03"]);
		});
	}
	await store.close();
	await store.settleLate(JSON.stringify(event));
	expect((await db.sql`select charged_nano_usd from usage_event where account_id = 'u'`).length).toBe(1);
});

test("the database notifies instances of a recall when it commits", async () => {
	await goLive(db, "r");
	let heard = 0;
	await db.listen(
		"tollgate_recall",
		() => (heard += 1),
		() => {},
	);
	await storeOf("r").recall(["any"]);
	await waitFor(() => heard > 0, "the announcement");
});

test("the books are correct after all statements of this file", async () => {
	const { checks } = await reconcile(db.statements);
	const broken = checks.filter(({ ok, name }) => !ok && !name.includes("top-up") && !name.includes("has its lease"));
	expect(broken).toEqual([]);
});

test("a flush reads only the leases and requests that it names", async () => {
	const OTHERS = 400;
	// With this many rows, PostgreSQL plans no sequential scan even before the table is analysed.
	const RUNNING = 4_000;
	await goLive(db, "many");
	const store = storeOf("many");
	for (let n = 0; n < OTHERS; n++) {
		await makeAccount(db, `many${n}`, 1_000, {});
		await store.grant([wish(`many${n}`, 100)]);
	}
	await makeAccount(db, "many", 100_000, { "many-key": null });
	await store.grant([wish("many", 50_000), wish("many-key", 50_000)]);
	const events = Array.from({ length: RUNNING }, () => settledEvent("many", "many-key", 1));
	await store.flush([], JSON.stringify(events));
	await db.sql`analyze`;
	const running = await db.sql`select 1 from reservation where instance_id = 'many'`;
	const columns = SettledColumns.of(events.slice(0, 2)).literals();
	const literals = Object.values(columns).map((literal) => `'${literal}'`);
	const read = await db.sql.begin(async (sql) => {
		await sql.unsafe(SET_AUTO_PLANS);
		// Reads the rows read so far in this transaction. PostgreSQL includes reads of earlier transactions here.
		const counted = () => sql<{ name: string; rows: number }[]>`
			select relname as name, (seq_tup_read + idx_tup_fetch)::integer as rows from pg_stat_xact_user_tables
				where relname in ('lease', 'reservation') order by 1`;
		const before = new Map((await counted()).map(({ name, rows }) => [name, rows]));
		await sql.unsafe(`select lease_settle('many', 1, ${literals.join()}, '[]')`);
		return (await counted()).map(({ name, rows }) => ({ name, rows: rows - (before.get(name) ?? 0) }));
	});
	expect(running.length).toBe(RUNNING);
	expect(read.map(({ name }) => name)).toEqual(["lease", "reservation"]);
	for (const { rows } of read) expect(rows).toBeLessThanOrEqual(20);
	expect((await db.sql`select 1 from reservation where instance_id = 'many'`).length).toBe(RUNNING - 2);
});
