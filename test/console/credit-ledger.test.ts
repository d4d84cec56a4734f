import { expect, test } from "bun:test";
import { ledgerPage } from "../../src/console/credit/credit-ledger.ts";
import { rebuildUsage } from "../../src/console/usage/usage-fold.ts";
import { withDatabase } from "../support/database.ts";
import { FOLD_MS, foldAll } from "../support/sums.ts";
import { waitFor } from "../support/wait.ts";
import { writeUsage } from "./usage-rows.ts";

const db = await withDatabase();
const DAYS = 40;

/** Creates an account with usage on each day and ledger entries in between, some exactly at midnight. */
async function account(id: string, rows: number): Promise<void> {
	const { sql } = db;
	await sql`insert into account (id, email, name) values (${id}, ${`${id}@example.com`}, ${id})`;
	await sql`insert into budget (id, kind, account_id, limit_nano_usd) values (${id}, 'account', ${id}, 0)`;
	await sql`insert into ledger_entry (id, account_id, kind, amount_nano_usd, source_ref, actor, note, created_at)
		select ${id} || n, ${id}, case n % 3 when 0 then 'refund' else 'top_up' end, case n % 3 when 0 then -7000000 else 900000000 end, ${id} || n, 'test', '',
			date_trunc('day', now(), 'UTC') - n / 3 * interval '1 day' + case n % 2 when 0 then interval '0' else n * interval '7 minutes' end
		from generate_series(0, ${DAYS}) n`;
	await sql`update budget set limit_nano_usd = (select sum(amount_nano_usd) from ledger_entry where account_id = ${id}) where id = ${id}`;
	await writeUsage(db, { accountId: id, keyIds: [`key_${id}`], rows, days: DAYS, models: 3 });
}

async function allMovements(id: string) {
	const rows = await db.sql<{ id: string; amount: string; running: string }[]>`
		with movements as (
			select 'usage:' || to_char(day at time zone 'UTC', 'YYYY-MM-DD') as id, -charged as amount, day + interval '1 day' as place
			from (select date_trunc('day', admitted_at, 'UTC') as day, sum(charged_nano_usd) as charged from usage_event where account_id = ${id} group by 1) d
			union all
			select id, amount_nano_usd, created_at from ledger_entry where account_id = ${id}
		)
		select id, amount, sum(amount) over (order by place, id) as running from movements order by place desc, id desc`;
	return rows.map((row) => ({ id: row.id, amount: Number(row.amount), running: Number(row.running) }));
}

async function byPages(id: string, asked: number) {
	const all: { id: string; amount: number; running: number }[] = [];
	for (let after: string | null = null; ; ) {
		const rows = await ledgerPage(db.statements, id, { asked, after });
		all.push(...rows.map((row) => ({ id: row.id, amount: row.amountNanoUsd, running: row.runningNanoUsd })));
		after = rows.at(-1)?.cursor ?? null;
		if (rows.length < asked || after === null) return all;
	}
}

async function totals() {
	const of = (rows: { account_id: string; charged: string }[]) =>
		rows.map((row) => `${row.account_id} ${row.charged}`).sort();
	return {
		kept: of(await db.sql`select account_id, charged_nano_usd as charged from usage_total where charged_nano_usd <> 0`),
		summed: of(await db.sql`select account_id, sum(charged_nano_usd) as charged from usage_hour group by 1`),
	};
}

await account("acc_a", 900);
await account("acc_b", 300);
await waitFor(async () => (await rebuildUsage(db.statements)) === 1_200, "all usage to be summed", FOLD_MS);

test("pages of the credit ledger list each movement once, with its balance", async () => {
	for (const id of ["acc_a", "acc_b"]) {
		const expected = await allMovements(id);
		expect(expected.length).toBeGreaterThan(2 * DAYS - 2);
		for (const asked of [1, 2, 7, 50, 200]) expect(await byPages(id, asked)).toEqual(expected);
	}
});

test("the credit ledger is empty for a new account and refuses a bad cursor", async () => {
	await db.sql`insert into budget (id, kind, account_id, limit_nano_usd) values ('acc_new', 'account', 'acc_new', 5)`;
	expect(await byPages("acc_new", 10)).toEqual([]);
	await db.sql`insert into ledger_entry (id, account_id, kind, amount_nano_usd, source_ref, actor) values ('led_new', 'acc_new', 'top_up', 5, 'new', 'test')`;
	expect(await byPages("acc_new", 10)).toEqual([{ id: "led_new", amount: 5, running: 5 }]);
	for (const after of ["x", "1.led_new", "1.5.", "1.1e9.led_new"])
		expect(ledgerPage(db.statements, "acc_new", { asked: 10, after })).rejects.toThrow(
			"`after` must be the `next` value of the previous page.",
		);
	const [told] = await ledgerPage(db.statements, "acc_new", {
		asked: 10,
		after: "99999999999999999.999999999999999999.x",
	});
	expect([told?.id, Number(told?.runningNanoUsd) > 9e17]).toEqual(["led_new", true]);
});

test("the sum of an account's hourly totals equals its usage after each change", async () => {
	const { kept, summed } = await totals();
	expect(kept.length).toBe(2);
	expect(kept).toEqual(summed);
	// Adds usage to existing hourly sums and to new hours.
	await writeUsage(db, { accountId: "acc_b", keyIds: ["key_acc_b"], rows: 50, days: 1, models: 2 });
	await db.sql`update usage_event set settled_at = clock_timestamp() where account_id = 'acc_b' and admitted_at > now() - interval '1 day'`;
	await foldAll(db.statements);
	const folded = await totals();
	expect(folded.kept).toEqual(folded.summed);
	expect(folded.kept).not.toEqual(kept);
	await db.sql`update usage_hour set charged_nano_usd = charged_nano_usd - 3 where account_id = 'acc_a' and charged_nano_usd > 3`;
	await db.sql`delete from usage_hour where account_id = 'acc_b' and hour < now() - interval '5 days'`;
	const after = await totals();
	expect(after.kept).toEqual(after.summed);
	expect(after.kept).not.toEqual(folded.kept);
});
