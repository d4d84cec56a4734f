import { expect, test } from "bun:test";
import { collectRefunds } from "../../src/billing/stripe-events.ts";
import type { Transactional } from "../../src/db/transactional.ts";
import { createAccount } from "../../src/keys/account-admin.ts";
import { openTransaction } from "../support/open-transaction.ts";
import { payIn } from "../support/paid-account.ts";
import { SET_AUTO_PLANS } from "../support/postgres.ts";
import { usd, withAutomatic } from "./automatic.ts";

/** Tests that refunds of spent credit stay owed, even for years, without slowing the checks of other accounts. */

const { balance, db, spend } = await withAutomatic();

const paidIn = (accountId: string) => payIn(db.statements, accountId, usd(100), "card");

/** Creates a customer who paid USD 100 by card, spent `spent` of it, and got a refund of the whole payment. */
async function refunded(payment: string, spent: number) {
	const email = `${crypto.randomUUID()}@example.com`;
	const { id: accountId } = await createAccount(db.statements, { email, vouched: true });
	const topUp = await paidIn(accountId);
	if (spent > 0) await spend({ accountId }, spent);
	await db.sql`insert into stripe_payment (id, top_up_id, refunded_cents) values (${payment}, ${topUp}, 10000)`;
	return { accountId };
}

const booked = async (payment: string) => {
	const [row] = await db.sql`select booked_refund_cents as cents from stripe_payment where id = ${payment}`;
	return Number(row?.cents);
};
const entries = async () => (await db.sql`select seq from control_log`).length;

test("a refund of spent credit is taken from the next top-up", async () => {
	const ann = await refunded("pi_spent", 100);
	const before = await entries();
	for (let looks = 0; looks < 3; looks++) await collectRefunds(db.tx);
	expect(await entries()).toBe(before);
	await paidIn(ann.accountId);
	await collectRefunds(db.tx);
	expect([await booked("pi_spent"), await balance(ann)]).toEqual([10_000, 0]);
});

test("each refund check recalls credit owed for a refund from the instance", async () => {
	const ann = await refunded("pi_lent", 0);
	await db.sql`insert into instance_beat (id, epoch, beat, state, ttl_ms, lease_until) values ('ins_a', 1, 1, 'live', 30000, now() + interval '1 hour')`;
	const grant = { op: crypto.randomUUID(), budget: ann.accountId, want: usd(100), min: usd(100), again: false };
	await db.sql`select lease_grant('ins_a', 1, ${JSON.stringify([grant])}::text::json)`;
	const before = await entries();
	await collectRefunds(db.tx);
	await collectRefunds(db.tx);
	expect(await entries()).toBe(before + 2);
});

test("a hundred accounts that owe refunds of spent credit delay no other account", async () => {
	for (let n = 0; n < 100; n++) await refunded(`pi_0_owed_${n}`, 100);
	await refunded("pi_9_covered", 0);
	await collectRefunds(db.tx);
	expect(await booked("pi_9_covered")).toBe(10_000);
});

test("refunds owed by a hundred accounts on a silent instance delay no other refund", async () => {
	await db.sql`insert into instance_beat (id, epoch, beat, state, ttl_ms, lease_until) values ('ins_gone', 1, 1, 'live', 30000, now())`;
	const lend = async ({ accountId }: { accountId: string }) => {
		const grant = { op: crypto.randomUUID(), budget: accountId, want: usd(100), min: usd(100), again: false };
		await db.sql`select lease_grant('ins_gone', 1, ${JSON.stringify([grant])}::text::json)`;
		return accountId;
	};
	for (let n = 0; n < 100; n++) await lend(await refunded(`pi_0_gone_${n}`, 0));
	await refunded("pi_8_covered", 0);
	await collectRefunds(db.tx);
	expect(await booked("pi_8_covered")).toBe(10_000);
	const last = await lend(await refunded("pi_8_lent", 0));
	const isAsked = async () =>
		(await db.sql`select 1 from control_log where subject = ${last} and payload->>'lowered' = 'true'`).length > 0;
	for (let looks = 0; looks < 20 && !(await isAsked()); looks++) await collectRefunds(db.tx);
	expect(await isAsked()).toBe(true);
}, 60_000);

test("a database lock on one account delays no other account's refund", async () => {
	const held = await refunded("pi_0_held", 0);
	await refunded("pi_1_behind", 0);
	const release = await openTransaction(
		db.sql,
		(tx) => tx`select 1 from account where id = ${held.accountId} for update`,
	);
	await collectRefunds(db.tx).finally(release);
	expect([await booked("pi_0_held"), await booked("pi_1_behind")]).toEqual([0, 10_000]);
	await collectRefunds(db.tx);
	expect(await booked("pi_0_held")).toBe(10_000);
}, 60_000);

test("a refund check reads as many rows with many old payments as with none", async () => {
	const UNDONE = new Error("undone");
	const work = db.tx.transaction(async (tx) => {
		await tx.execute(SET_AUTO_PLANS);
		const rowsOf = async (text: string) => (await tx.execute(text)) as unknown as { rows: number }[];
		const fill = async (from: number, to: number) => {
			const n = `from generate_series(${from}, ${to}) n`;
			await tx.execute(
				`insert into top_up (id, account_id, amount_nano_usd, method, reference, state) select 'top_m' || n, 'many', 1e11, 'card', 'm' || n, 'confirmed' ${n}`,
			);
			await tx.execute(`insert into stripe_payment (id, top_up_id) select 'pi_m' || n, 'top_m' || n ${n}`);
			await tx.execute(
				`insert into stripe_dispute (id, payment_id, amount_cents, state, booked) select 'dp_m' || n, 'pi_m' || n, 1, 'won', 'returned' ${n}`,
			);
			await tx.execute("analyze top_up, stripe_payment, stripe_dispute");
		};
		const read = async () => {
			const count = async () => {
				const [row] = await rowsOf(
					"select sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0))::int as rows from pg_stat_xact_user_tables",
				);
				return Number(row?.rows);
			};
			const before = await count();
			await collectRefunds(tx as unknown as Transactional);
			return (await count()) - before;
		};
		await fill(1, 200);
		const few = await read();
		await fill(201, 20_000);
		expect(await read()).toBeLessThanOrEqual(few);
		throw UNDONE;
	});
	await expect(work).rejects.toBe(UNDONE);
});
