import { expect, test } from "bun:test";
import { scheduleAutoTopUpChecks } from "../../src/billing/auto-top-ups.ts";
import { findAlerts } from "../../src/console/alerts/alerts.ts";
import { rolledBack } from "../support/database.ts";
import { SET_AUTO_PLANS } from "../support/postgres.ts";
import { withAutomatic } from "./automatic.ts";

/** Tests that a check costs no more with more accounts, nor with a longer time since the last check. */

const { attempts, charges, db, pass, payer, spend } = await withAutomatic({ reconciles: false });
const NOTES = 50;

/** Inserts accounts that are marked for a check. Every tenth has credit below its threshold. */
async function fill(from: number, to: number): Promise<void> {
	await db.sql.begin(async (sql) => {
		await sql`insert into account (id, email, name) select 'many' || n, 'many' || n || '@example.com', '' from generate_series(${from}::int, ${to}::int) n`;
		await sql`
			insert into budget (id, kind, account_id, limit_nano_usd)
			select 'many' || n, 'account', 'many' || n, case when n % 10 = 0 then 10 else 100 end * 1000000000::bigint from generate_series(${from}::int, ${to}::int) n`;
		await sql`insert into saved_card (account_id, customer_id, payment_method_id) select 'many' || n, 'cus', 'pm' from generate_series(${from}::int, ${to}::int) n`;
		await sql`
			insert into auto_top_up (account_id, below_nano_usd, amount_nano_usd, month_most_nano_usd, state)
			select 'many' || n, 50000000000, 100000000000, 1000000000000, 'on' from generate_series(${from}::int, ${to}::int) n`;
		await sql`insert into credit_alert (account_id, threshold_nano_usd) select 'many' || n, 50000000000 from generate_series(${from}::int, ${to}::int) n`;
		await sql`insert into auto_top_up_touched (account_id) select 'many' || n from generate_series(${from}::int, ${to}::int) n`;
		await sql`insert into alert_touched (account_id) select 'many' || n from generate_series(${from}::int, ${to}::int) n`;
	});
}

const STATEMENTS = {
	sort: `select auto_top_up_sort(${NOTES})`,
	due: "select account_id from auto_top_up where state = 'on' and look_at <= now() order by look_at limit 5",
	begin: "select auto_top_up_begin('many10', 'att_many', 'top_many', 'ref_many')",
	alerts: `select alerts_look(${NOTES}, '["owner"]')`,
};

/** Rows that each statement of a check reads, as PostgreSQL counts them. */
async function read({ isSmall }: { isSmall: boolean }): Promise<Record<string, number>> {
	const rows: Record<string, number> = {};
	for (const [name, statement] of Object.entries(STATEMENTS)) {
		await rolledBack(db.sql, async (sql) => {
			await sql.unsafe(SET_AUTO_PLANS);
			// The check starts with accounts that are already due.
			await sql`update auto_top_up set look_at = now() where account_id in (select 'many' || n * 10 from generate_series(1, 9) n)`;
			// PostgreSQL would scan a table of one or two pages, so its counts could not be compared with a large table's.
			if (isSmall) await sql`set local enable_seqscan = off`;
			const count = async () => {
				const [row] =
					await sql`select sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0))::int as rows from pg_stat_xact_user_tables`;
				return Number(row?.rows);
			};
			const before = await count();
			await sql.unsafe(statement);
			rows[name] = (await count()) - before;
		});
	}
	return rows;
}

test("an automatic top-up check reads no more rows with 100 times as many accounts", async () => {
	await fill(1, 200);
	await db.sql`analyze`;
	const small = await read({ isSmall: true });
	await fill(201, 20_000);
	await db.sql`analyze`;
	for (const [name, rows] of Object.entries(await read({ isSmall: false }))) {
		expect({ name, reads: rows > 0 }).toEqual({ name, reads: true });
		expect({ name, rows, more: rows > (small[name] ?? 0) * 1.1 + 5 }).toEqual({ name, rows, more: false });
	}
	for (const table of ["auto_top_up_touched", "alert_touched"]) await db.sql`delete from ${db.sql(table)}`;
	await db.sql`delete from auto_top_up where account_id like 'many%'`;
});

test("spending marks an account for one top-up check, which buys credit once", async () => {
	const [ann, ben] = [await payer(), await payer()];
	for (let n = 0; n < 5; n++) await spend(ann, 12);
	for (let n = 0; n < 5; n++) await spend(ben, 1);
	expect((await db.sql`select 1 from auto_top_up_touched`).length).toBeGreaterThanOrEqual(10);
	await scheduleAutoTopUpChecks(db.statements);
	expect(await db.sql`select 1 from auto_top_up_touched`).toHaveLength(0);
	const marked = await db.sql`select account_id from auto_top_up where look_at is not null`;
	expect(marked.map(({ account_id }) => account_id)).toEqual([ann.accountId]);
	await pass(3);
	expect([charges(ann), charges(ben)]).toEqual([1, 0]);
	// Spending of an account that has reached its monthly limit triggers no check.
	await spend(ann, 100);
	await db.sql`update auto_top_up set look_at = now() + interval '1 hour' where account_id = ${ann.accountId}`;
	await spend(ann, 1);
	await scheduleAutoTopUpChecks(db.statements);
	const held = await db.sql`select 1 from auto_top_up where account_id = ${ann.accountId} and look_at > now()`;
	expect(held).toHaveLength(1);
});

test("top-up checks process all marked accounts if one statement cannot read them all", async () => {
	const ann = await payer();
	await scheduleAutoTopUpChecks(db.statements);
	await db.sql`insert into auto_top_up_touched (account_id) select 'nobody' from generate_series(1, 1200)`;
	await spend(ann, 60);
	await db.sql.begin(async (booking) => {
		await booking`insert into auto_top_up_touched (account_id) values ('held')`;
		await scheduleAutoTopUpChecks(db.statements);
		expect(await db.sql`select 1 from auto_top_up_touched`).toHaveLength(0);
	});
	expect(await db.sql`select account_id from auto_top_up_touched`).toMatchObject([{ account_id: "held" }]);
	await pass(2);
	expect(await attempts(ann)).toMatchObject([{ state: "succeeded" }]);
});

test("the check of one account deletes its marks and keeps those of other accounts", async () => {
	await db.sql`delete from alert_touched`;
	await db.sql`insert into alert_touched (account_id) select case when n <= 300 then 'a' else 'b' end from generate_series(1, 600) n`;
	await db.sql`select alerts_look(1, '["owner"]')`;
	const left = await db.sql`select account_id, count(*)::int as rows from alert_touched group by 1`;
	expect(left.map((row) => ({ ...row }))).toEqual([{ account_id: "b", rows: 300 }]);
	await findAlerts(db.statements);
	expect(await db.sql`select 1 from alert_touched`).toHaveLength(0);
});

test("setting the clock back a month blocks no top-up and exceeds no monthly limit", async () => {
	const ann = await payer("good", { most: 100 });
	await spend(ann, 60);
	await pass(2);
	expect(charges(ann)).toBe(1);
	await spend(await payer("processing"), 60);
	await pass(1);
	// Writes rows as versions before the migration wrote them.
	const later = db.sql`interval '31 days'`;
	await db.sql`update auto_top_up_attempt set begun_at = begun_at + ${later}, look_at = look_at + ${later}`;
	await spend(ann, 100);
	await pass(2);
	await db.sql`update auto_top_up set look_at = look_at + ${later} where look_at is not null`;
	await db.sql`update auto_top_up_attempt set look_at = now() + ${later} where state = 'sent'`;
	await scheduleAutoTopUpChecks(db.statements);
	const [settings] = await db.sql`select look_at <= now() as due from auto_top_up where account_id = ${ann.accountId}`;
	const [open] = await db.sql`select look_at <= now() as due from auto_top_up_attempt where state = 'sent'`;
	expect([settings?.due, open?.due]).toEqual([true, true]);
	await pass(2);
	expect(charges(ann)).toBe(1);
});
