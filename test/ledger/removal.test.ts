/** Tests that removing old settled requests keeps their sums and charges no customer twice. */

import { expect, test } from "bun:test";
import { createPgLedgerStore } from "../../src/ledger/pg-store.ts";
import { removeUsage } from "../../src/ledger/removal.ts";
import { rebuildAllSums } from "../support/sums.ts";
import { agedBooks, KEPT_DAYS, REQUESTS_A_DAY } from "./aged-books.ts";
import { goLive, settledEvent, wish } from "./fixture.ts";

const OLD = 3 * REQUESTS_A_DAY;

test("the removal job deletes old requests and keeps the sums correct", async () => {
	const books = await agedBooks();
	const { sql, settled, statements } = books;
	const before = { hours: await books.hours(), spent: await books.spent() };
	// For each of five days one hour, in the sums of accounts and in those of the service.
	expect(before.hours.length).toBe(10);
	expect(await books.removeAll()).toBe(OLD);
	const young = settled.filter(({ daysAgo }) => daysAgo < KEPT_DAYS).map(({ event }) => event.id);
	expect((await books.ids()).sort()).toEqual(young.sort());
	await books.verify();
	expect(await books.broken()).toEqual([]);
	await rebuildAllSums(statements);
	expect(await books.hours()).toEqual(before.hours);
	// Simulates a restored database, in which transaction numbers start again.
	await sql`update usage_cursor set horizon = pg_current_xact_id()::text::bigint + 1000000`;
	await books.fold();
	expect(await books.hours()).toEqual(before.hours);
	expect(await books.spent()).toEqual(before.spent);
	expect(await books.removeAll()).toBe(0);
	// The chain of seals covers a removed day's sums, and its hash covers the day's ledger entries.
	await sql`update sealed_day set charged_nano_usd = charged_nano_usd - 1 where day = (select min(day) from sealed_day)`;
	expect(await books.broken()).toEqual([
		"each seal matches the previous seal",
		"the spending of leases matches the seals of their days",
	]);
	await sql`update sealed_day set charged_nano_usd = charged_nano_usd + 1 where day = (select min(day) from sealed_day)`;
	await sql`update ledger_entry set note = 'changed'`;
	await books.verify();
	expect(await books.broken()).toEqual(["every closed day matches its seal"]);
});

test("the removal job refuses and counts a deleted request that a journal sends again", async () => {
	const books = await agedBooks();
	const { sql, settled } = books;
	// Starts an epoch that stays live and whose journal still has old settlements.
	const [{ epoch: live } = {}] = await sql`select instance_join('i', 60000) as epoch`;
	const [{ seq } = {}] = await sql`select coalesce(max(seq), 0) as seq from control_log`;
	await sql`select instance_go_live('i', ${live}, ${seq}, 60000)`;
	await sql`update instance_beat set started_at = started_at - interval '13 days' where id = 'i' and epoch = ${live}`;
	const before = await books.spent();
	await books.removeAll();
	for (const { event, epoch } of settled) await books.settle(event, epoch);
	for (const { event } of settled.slice(0, OLD)) await books.settle(event, live);
	expect(await books.spent()).toEqual(before);
	expect((await books.ids()).length).toBe(settled.length - OLD);
	expect(await sql`select epoch, requests, charged_nano_usd from refused_settlement order by epoch`).toEqual([
		{ epoch: 1, requests: "4", charged_nano_usd: "46" },
		{ epoch: 2, requests: "4", charged_nano_usd: "46" },
		{ epoch: 3, requests: "4", charged_nano_usd: "46" },
		{ epoch: live, requests: "12", charged_nano_usd: "138" },
	] as never);
	// A request admitted after the cut-off is charged even if its settlement arrives late.
	const young = settledEvent("acc", "key", 7, { at: settled[OLD]?.event.at ?? 0 });
	await books.settle(young, 4);
	expect(await books.ids()).toContain(young.id);
	expect(await books.broken()).toEqual([]);
});

/** Books from which all requests older than the retention were removed. */
const cutBooks = await agedBooks();
await cutBooks.removeAll();

test("requests dated in the past by a slow clock are charged despite the removal job", async () => {
	const { sql, db } = cutBooks;
	const epoch = await goLive(db, "i");
	const store = createPgLedgerStore({ statements: db.ledger }, "i", epoch);
	await store.grant([wish("acc", 1_000), wish("key", 1_000)]);
	const [before] = await sql`select sum(settled_nano_usd)::int as settled from lease where budget_id = 'acc'`;
	const at = Date.now() - 400 * 24 * 3600_000;
	const [running, right, late] = [at, Date.now(), at + 1].map((when) => settledEvent("acc", "key", 7, { at: when }));
	if (running === undefined || right === undefined || late === undefined) throw new Error("there are three");
	expect(await store.flush([running, right], "[]")).toMatchObject({ late: false, fresh: 2 });
	await store.close();
	await store.settleLate(JSON.stringify(late));
	const [after] = await sql`select sum(settled_nano_usd)::int as settled from lease where budget_id = 'acc'`;
	expect(after?.settled - before?.settled).toBe(3 * 7);
	expect(await cutBooks.ids()).toEqual(expect.arrayContaining([running.id, right.id, late.id]));
	expect(await sql`select 1 from refused_settlement`).toHaveLength(0);
	// The row is dated after every removal and after the hours that are already summed.
	const [row] = await sql`select count(*)::int as old from usage_event where admitted_at < now() - interval '300 days'`;
	expect(row?.old).toBe(0);
	await cutBooks.fold();
	expect(await cutBooks.broken()).toEqual([]);
});

test("the removal job finds when an epoch started, whatever late settlements it has", async () => {
	const { sql, settled } = cutBooks;
	const [old] = settled;
	if (old === undefined) throw new Error("there is one");
	await sql`delete from instance_beat where id = 'i' and epoch = ${old.epoch}`;
	await cutBooks.settle(settledEvent("acc", "key", 7, { at: Date.now() }), old.epoch);
	expect(await sql`select 1 from instance_beat where id = 'i' and epoch = ${old.epoch}`).toHaveLength(1);
	const spent = await cutBooks.spent();
	await cutBooks.settle(old.event, old.epoch);
	// Dates the epoch as far from its settlements as the database's clock may have jumped.
	const [{ epoch: near } = {}] = await sql`select instance_join('i', 60000) as epoch`;
	await sql`
		update instance_beat set started_at = (select usage_before from removal) + interval '6 days' where id = 'i' and epoch = ${near}`;
	await cutBooks.settle(old.event, near);
	expect(await cutBooks.spent()).toEqual(spent);
	expect(await cutBooks.ids()).not.toContain(old.event.id);
});

test("the removal job waits for the sums and for instances that may lack the new limit", async () => {
	const books = await agedBooks();
	const { sql, deps, settled } = books;
	expect(await removeUsage(deps, KEPT_DAYS, false)).toBe(0);
	expect(await removeUsage(deps, KEPT_DAYS, false)).toBe(0);
	expect((await books.ids()).length).toBe(settled.length);
	const [said] =
		await sql`select usage_before > '-infinity' as said, usage_frozen = '-infinity' as thawed from removal`;
	expect(said).toEqual({ said: true, thawed: true });
	// If the hourly sums must be rebuilt, the rows stay until the rebuild has read them.
	await books.hoursLater();
	await sql`update usage_cursor set horizon = null`;
	expect(await removeUsage(deps, KEPT_DAYS, false)).toBe(0);
	await books.fold();
	expect(await removeUsage(deps, KEPT_DAYS, false)).toBe(OLD);
});

test("the removal job keeps a request dated in the future by a fast clock until then", async () => {
	const books = await agedBooks();
	const { sql, settled } = books;
	const ahead = settled[1]?.event;
	await sql`update usage_event set admitted_at = now() where request_id = ${ahead?.id ?? ""}`;
	expect(await books.removeAll()).toBe(OLD - 1);
	expect(await books.ids()).toContain(ahead?.id);
	const before = await books.spent();
	if (ahead !== undefined) await books.settle({ ...ahead, at: Date.now() }, 1);
	expect(await books.spent()).toEqual(before);
});

test("the removal job leaves the same rows wherever it is interrupted", async () => {
	const books = await agedBooks();
	const { sql, statements } = books;
	const before = await books.hours();
	const step = () => statements<{ state: string }>`select state from removal_usage(${KEPT_DAYS}::integer, false, 1)`;
	await step();
	await books.hoursLater();
	for (let states = ["more"]; states.includes("more"); ) {
		// Runs two removals concurrently and kills one of them in the middle.
		const killed = sql
			.begin(async (transaction) => {
				await transaction`select removal_usage(${KEPT_DAYS}, false, 1)`;
				throw new Error("killed");
			})
			.catch(({ message }) => message);
		states = (await Promise.all([step(), step()])).map(([row]) => row?.state ?? "");
		expect(await killed).toBe("killed");
		expect(await books.broken()).toEqual([]);
		await rebuildAllSums(statements);
		expect(await books.hours()).toEqual(before);
		if (states.every((state) => state === "busy")) states = ["more"];
	}
	await books.verify();
	expect(await books.broken()).toEqual([]);
	expect((await books.ids()).length).toBe(2 * REQUESTS_A_DAY);
	expect(await books.hours()).toEqual(before);
});

/** Books in which each of the next tests leaves rows for the following test. */
const uncutBooks = await agedBooks();

test("the removal job stops at a day that is unsealed, changed or not archived", async () => {
	const { sql } = uncutBooks;
	const second = "(select min(day) + 1 from sealed_day)";
	const holdsBack = async (change: string, restore: string) => {
		await sql.unsafe(`update sealed_day set ${change} where day = ${second}`);
		const until = await sql.unsafe(`
			select (removal_until('-infinity', ${KEPT_DAYS}, true) at time zone 'UTC')::date = ${second} as here`);
		await sql.unsafe(`update sealed_day set ${restore} where day = ${second}`);
		return until[0]?.here;
	};
	await sql`update sealed_day set archived_at = now()`;
	expect(await holdsBack("sealed_at = now()", "sealed_at = now() - interval '9 days'")).toBe(true);
	expect(await holdsBack("sealed_at = now() + interval '9 days'", "sealed_at = now() - interval '9 days'")).toBe(true);
	expect(await holdsBack("problem = 'changed'", "problem = null")).toBe(true);
	expect(await holdsBack("archived_at = null", "archived_at = now()")).toBe(true);
	const [row] = await sql`
		select (now() at time zone 'UTC')::date - (removal_until('-infinity', ${KEPT_DAYS}, true) at time zone 'UTC')::date as days`;
	expect(row).toEqual({ days: KEPT_DAYS });
	// The removal never passes the next day to be sealed, whatever the clock says.
	await sql`update sealed_day set sealed_at = '2000-01-01'`;
	const [leapt] = await sql`
		select removal_until('-infinity', -100, true) = (select day::timestamp at time zone 'UTC' from seal_cursor) as kept`;
	expect(leapt).toEqual({ kept: true });
});

test("closing a lost instance's leases records no request as old as the deleted ones", async () => {
	const { sql } = uncutBooks;
	const [{ epoch } = {}] = await sql`select instance_join('lost', 60000) as epoch`;
	await sql`
		insert into reservation (request_id, account_id, key_id, instance_id, epoch, model, reserved_nano_usd, admitted_at)
			select gen_random_uuid(), 'acc', 'key', 'lost', ${epoch}, 'm', 5, now() - make_interval(days => d) from unnest(array[20, 5]) d`;
	await uncutBooks.removeAll();
	await sql`select lease_close('lost', ${epoch}, true, 100)`;
	expect(
		await sql`select admitted_at < now() - interval '8 days' as old from usage_event where instance_id = 'lost'`,
	).toEqual([{ old: false }] as never);
});
