/** Tests that removing lease rows of ended epochs changes no charge and no debt. */
import { expect, test } from "bun:test";
import { accountBalance, keyBalance } from "../../src/ledger/balance.ts";
import { createPgLedgerStore } from "../../src/ledger/pg-store.ts";
import { removeLeases, removeUsage } from "../../src/ledger/removal.ts";
import { sealDays } from "../../src/ledger/seals.ts";
import { SET_AUTO_PLANS } from "../support/postgres.ts";
import { agedBooks, KEPT_DAYS } from "./aged-books.ts";
import { giving, goLive, settledEvent, wish } from "./fixture.ts";

const OLD_EPOCHS = 3;

type Books = Awaited<ReturnType<typeof agedBooks>>;

async function counts({ sql }: Books): Promise<unknown> {
	const [row] = await sql`
		select (select count(*)::int from lease_op) as operations, (select count(*)::int from lease) as leases,
			(select count(distinct (id, epoch))::int from instance_beat) as epochs`;
	return row;
}

async function money({ statements, sql }: Books): Promise<unknown[]> {
	return [
		await accountBalance(statements, "acc"),
		await keyBalance(statements, "key"),
		await sql`select id, drawn_nano_usd, written_off_nano_usd from budget order by id`,
	];
}

/** Makes the last pass of the removal a day old, so that the next pass begins. */
async function nextDay({ sql }: Books): Promise<void> {
	await sql`update removal set op_round_at = op_round_at - interval '1 day'`;
}

test("the removal job deletes old operations, leases and epochs and keeps balances", async () => {
	const books = await agedBooks();
	const before = await money(books);
	expect(before[0]).toMatchObject({ spent: 5 * 46 });
	expect(await counts(books)).toEqual({ operations: 15, leases: 10, epochs: 5 });
	await removeLeases(books.deps, KEPT_DAYS);
	expect(await counts(books)).toEqual({ operations: 6, leases: 4, epochs: 2 });
	expect(await money(books)).toEqual(before);
	await books.verify();
	expect(await books.broken()).toEqual([]);
	// Changes a budget's sums without its days. The check must notice, because it compares both.
	await books.sql`update sealed_budget set spent_nano_usd = spent_nano_usd - 1, removed_nano_usd = removed_nano_usd - 1 where budget_id = 'acc'`;
	await books.sql`update budget set drawn_nano_usd = drawn_nano_usd - 1 where id = 'acc'`;
	await books.verify();
	expect(await books.broken()).toEqual(["the spending of leases matches the seals of their days"]);
	await books.sql`update budget set drawn_nano_usd = drawn_nano_usd + 1 where id = 'acc'`;
	await books.sql`update sealed_budget set spent_nano_usd = spent_nano_usd + 1 where budget_id = 'acc'`;
	await books.verify();
	expect(await books.broken()).toEqual(["every closed day matches its seal"]);
});

test("the removal job keeps unsealed rows and rows of epochs that have not ended", async () => {
	const books = await agedBooks();
	const { sql, db } = books;
	const epoch = await goLive(db, "long");
	const store = createPgLedgerStore({ statements: db.ledger }, "long", epoch);
	const grant = wish("acc", 500);
	const back = giving("acc", 50);
	const refused = wish("key", 60_000, 60_000, { again: true });
	await store.grant([grant, refused]);
	await store.giveBack([back]);
	await store.flush([settledEvent("acc", "key", 0)], "[]");
	await sql`update lease_op set at = now() - interval '20 days' where instance_id = 'long'`;
	const before = await money(books);
	await removeLeases(books.deps, KEPT_DAYS);
	await nextDay(books);
	await removeLeases(books.deps, KEPT_DAYS);
	expect(await sql`select id from lease_op where instance_id = 'long'`).toHaveLength(3);
	// Repeats a grant after its reply was lost; it returns the first amount.
	await store.grant([grant]);
	await store.giveBack([back]);
	expect(await money(books)).toEqual(before);
});

test("a late settlement of a deleted epoch is recorded and sealed once", async () => {
	const books = await agedBooks();
	const { sql, settled } = books;
	await removeLeases(books.deps, KEPT_DAYS);
	expect(await sql`select 1 from instance_beat where id = 'i' and epoch = 1`).toHaveLength(0);
	const late = settledEvent("acc", "key", 7, { at: settled[0]?.event.at ?? 0 });
	await books.settle(late, 1);
	await books.settle(late, 1);
	expect(await books.broken()).toEqual([]);
	const after = await money(books);
	expect(after[0]).toMatchObject({ spent: 5 * 46 + 7 });
	expect(after[1]).toMatchObject({ spent: 5 * 46 + 7 });
	// The lease's day has not ended, so the test seals the lease directly.
	await sql`
		insert into sealed_lease (budget_id, instance_id, epoch, granted_nano_usd, charged_nano_usd) values ('acc', 'i', 1, 7, 7), ('key', 'i', 1, 7, 7)`;
	await sql`select books_seal_leases(100)`;
	await sql`update instance_beat set ended_at = now() - interval '20 days' where epoch = 1`;
	await removeLeases(books.deps, KEPT_DAYS);
	expect(
		await sql`select 1 from lease where epoch = 1 union all select 1 from instance_beat where epoch = 1`,
	).toHaveLength(0);
	expect(await money(books)).toEqual(after);
});

test("a late settlement during the removal job is neither lost nor doubled", async () => {
	const books = await agedBooks();
	const { sql, settled } = books;
	const at = settled.at(-1)?.event.at ?? 0;
	const late = Array.from({ length: 60 }, (_, n) => ({
		epoch: 1 + (n % OLD_EPOCHS),
		event: settledEvent("acc", "key", 3, { at }),
	}));
	let ready = false;
	const removing = (async () => {
		while (!ready) {
			await Promise.all([removeLeases(books.deps, KEPT_DAYS), removeLeases(books.deps, KEPT_DAYS)]).catch((error) => {
				// Concurrent removals by two consoles may deadlock; PostgreSQL then aborts one, which retries.
				if (error.code !== "40P01") throw error;
			});
			await sql`select books_seal_leases(100)`;
			await nextDay(books);
		}
	})();
	for (const { event, epoch } of late) await books.settle(event, epoch);
	ready = true;
	await removing;
	expect(await books.broken()).toEqual([]);
	expect(await accountBalance(books.statements, "acc")).toMatchObject({ spent: 5 * 46 + 60 * 3 });
	expect(
		await sql`
		select 1 from lease l where not exists (select 1 from instance_beat b where b.id = l.instance_id and b.epoch = l.epoch)`,
	).toHaveLength(0);
});

test("the number of a deleted epoch is never assigned again", async () => {
	const books = await agedBooks();
	await books.sql`update instance_beat set ended_at = now() - interval '20 days'`;
	await books.sql`update lease set sealed = sealed`;
	await removeLeases(books.deps, KEPT_DAYS);
	expect(await counts(books)).toMatchObject({ leases: 0, epochs: 1 });
	const [row] = await books.sql`select instance_join('i', 1000) as epoch`;
	expect(row).toEqual({ epoch: 6 });
});

test("the number of rows that a balance needs stays constant over many restarts", async () => {
	const books = await agedBooks();
	const { sql } = books;
	const restarts = (from: number, to: number) => sql`
		with made as (
			insert into lease (budget_id, instance_id, epoch, granted_nano_usd, settled_nano_usd, state, sealed)
				select b, 'r', n, 1, 1, 'closed', true from generate_series(${from}::int, ${to}::int) n, unnest(array['acc', 'key']) b
		), beats as (
			insert into instance_beat (id, epoch, beat, state, ttl_ms, lease_until, ended_at)
				select 'r', n, 1, 'left', 0, now(), now() - interval '20 days' from generate_series(${from}::int, ${to}::int) n
		)
		update sealed_budget set spent_nano_usd = spent_nano_usd + ${to - from + 1}`;
	const one = await sql.reserve();
	await one.unsafe(SET_AUTO_PLANS);
	/** Pages read: the minimum of several runs, because other sessions' reads of catalogue tables add to it. */
	const pages = async () => {
		await one`vacuum analyze lease`;
		const runs: number[] = [];
		while (runs.length < 4) {
			const plan = await one`explain (analyze, buffers, format json) select budget_spent('acc')`;
			const top = plan[0]?.["QUERY PLAN"][0].Plan;
			runs.push(top["Shared Hit Blocks"] + top["Shared Read Blocks"]);
		}
		return Math.min(...runs);
	};
	await restarts(1, 10);
	const few = await pages();
	await restarts(11, 400);
	const many = await pages();
	one.release();
	expect(many).toBeLessThanOrEqual(few + 4);
	await removeLeases(books.deps, KEPT_DAYS);
	for (let more = 1; more > 0; ) more = await removeLeases(books.deps, KEPT_DAYS);
	expect(await counts(books)).toMatchObject({ leases: 4, epochs: 3 });
	expect(await removeUsage(books.deps, KEPT_DAYS, false)).toBe(0);
	expect(await sealDays(books.deps)).toBe(0);
});
