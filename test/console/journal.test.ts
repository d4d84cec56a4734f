/** Monthly journals of a random history equal a reference model and the statements, and never change. */
import { expect, test } from "bun:test";
import { takeBackEndedPromotions } from "../../src/billing/adjustments.ts";
import {
	closeJournals,
	journalCsv,
	journalLines,
	listJournals,
	readJournal,
} from "../../src/console/statement/journal.ts";
import { readStatement } from "../../src/console/statement/statement.ts";
import { withDatabase } from "../support/database.ts";
import { createRandom } from "../support/random.ts";
import { foldAll } from "../support/sums.ts";

const db = await withDatabase();
const { sql, statements } = db;
const MONTHS = ["2026-05", "2026-06", "2026-07", "2026-08"];
const ACCOUNTS = ["acc_a", "acc_b", "acc_c", "acc_d"];
const KINDS = ["transfer", "card", "demo", "refund", "dispute", "won", "adjustment", "cut", "lost"] as const;
const random = createRandom(52);
const after = (month: string) => MONTHS[MONTHS.indexOf(month) + 1] ?? "2026-09";

/** Balances of the reference model in the present month, by account and ledger account. */
const model = new Map<string, number>();
const note = (debit: string, credit: string, amount: number) => {
	model.set(debit, (model.get(debit) ?? 0) + amount);
	model.set(credit, (model.get(credit) ?? 0) - amount);
};
/** Unspent promotional credit of each account. */
const left = new Map<string, number>();

async function book(account: string, kind: (typeof KINDS)[number], at: string): Promise<void> {
	const id = crypto.randomUUID();
	const amount = random.int(1, 900) * (["refund", "dispute", "cut"].includes(kind) ? -1 : 1);
	const [ledgerKind, other] = (
		{
			...{
				transfer: ["top_up", "1000"],
				card: ["top_up", "1100"],
				demo: ["top_up", "1900"],
				refund: ["refund", "1100"],
			},
			...{ dispute: ["dispute", "1100"], won: ["dispute", "1100"], lost: ["adjustment", "4200"] },
			...{ adjustment: ["adjustment", "6200"], cut: ["adjustment", "6200"] },
		} as const
	)[kind] as [string, string];
	if (ledgerKind === "top_up")
		await sql`insert into top_up (id, account_id, amount_nano_usd, method, reference, state) values (${id}, ${account}, ${amount}, ${kind}, ${id}, 'confirmed')`;
	const source = ledgerKind === "top_up" ? `topup:${id}` : kind === "lost" ? `batch-lost:${id}` : id;
	await sql`select ledger_book(${id}, ${account}, ${ledgerKind}, ${amount}, ${source}, 'test', '', true)`;
	await sql`update ledger_entry set created_at = ${at} where id = ${id}`;
	note(other, "2000", amount);
}

async function use(account: string, at: string): Promise<{ name: string; charged: number }> {
	const [name, charged] = [random.pick(["m-1", "m-2"]), random.int(1, 300)];
	await sql`insert into usage_event (request_id, account_id, key_id, instance_id, epoch, model, rate_card_id, endpoint, streamed,
			reserved_nano_usd, charged_nano_usd, basis, ending, status, prompt_tokens, completion_tokens, admitted_at, settled_at)
		values (gen_random_uuid(), ${account}, 'key_1', 'i', 1, ${name}, 'r', 'chat', false, ${charged}, ${charged}, 'exact', 'finished', 200, 5, 6, ${at}, clock_timestamp())`;
	await sql`insert into lease (budget_id, instance_id, epoch, granted_nano_usd, settled_nano_usd) values (${account}, 'i', 1, ${charged}, ${charged})
		on conflict (budget_id, instance_id, epoch) do update set granted_nano_usd = lease.granted_nano_usd + ${charged}, settled_nano_usd = lease.settled_nano_usd + ${charged}`;
	await sql`update budget set drawn_nano_usd = drawn_nano_usd + ${charged} where id = ${account}`;
	const promoted = Math.min(charged, left.get(account) ?? 0);
	left.set(account, (left.get(account) ?? 0) - promoted);
	note("2100", "2000", promoted);
	note("4100", "6100", promoted);
	return { name, charged };
}

async function promote(account: string, at: string): Promise<void> {
	const [id, amount] = [crypto.randomUUID(), random.int(1, 400)];
	await sql`insert into credit_adjustment (id, account_id, kind, amount_nano_usd, reason, idempotency_key, state, first_by) values (${id}, ${account}, 'promotion', ${amount}, '', ${id}, 'booked', 'test')`;
	await sql`select promotion_give(${id}, ${account}, ${amount}, ${id}, 'test', '', ${id}, ${random.chance(0.5) ? "2026-05-01" : null})`;
	await sql`update ledger_entry set created_at = ${at} where id = ${id}`;
	left.set(account, (left.get(account) ?? 0) + amount);
	note("6100", "2100", amount);
}

async function end(at: string): Promise<void> {
	await takeBackEndedPromotions(statements);
	const taken = await sql`
		update ledger_entry set created_at = ${at} where kind = 'promotion' and amount_nano_usd < 0 and created_at > now() - interval '1 hour'
		returning account_id, amount_nano_usd::int as amount`;
	for (const { account_id, amount } of taken) {
		left.set(account_id, (left.get(account_id) ?? 0) + amount);
		note("6100", "2100", amount);
	}
}

/** Plays a month: usage of the month, late usage of the month before, and the sealing of its days. */
async function play(month: string): Promise<void> {
	const day = () => `${month}-${String(random.int(1, 28)).padStart(2, "0")}T12:00:00Z`;
	for (let step = 0; step < 60; step++) {
		const account = random.pick(ACCOUNTS);
		const isLate = month !== MONTHS[0] && random.chance(0.1);
		if (random.chance(0.4)) {
			const { name, charged } = await use(
				account,
				isLate ? `${MONTHS[MONTHS.indexOf(month) - 1]}-28T23:59:59Z` : day(),
			);
			note("2000", isLate ? "4000" : `4000 ${name}`, charged);
		} else if (random.chance(0.3)) await promote(account, day());
		else if (random.chance(0.2)) await end(day());
		else await book(account, random.pick(KINDS), day());
	}
	const fee = random.int(1, 90);
	await sql`insert into stripe_payment (id, top_up_id, fee_cents, fee_at) values (${`pi_${month}`}, ${month}, ${fee}, ${day()})`;
	note("6000", "1100", fee * 10_000_000);
	await foldAll(statements);
	await sql`insert into seal_cursor (id, day, entries_from, closed_until, usage_at, usage_id, usage_hash, op_at, op_id)
		values (1, ${`${after(month)}-01`}, '-infinity', '-infinity', now(), gen_random_uuid(), '', now(), gen_random_uuid())
		on conflict (id) do update set day = excluded.day`;
}

/** Settles usage late, between the closing of the statement and of the journal: it belongs to the next month. */
async function settleLater(account: string, month: string): Promise<Map<string, number>> {
	await readStatement(statements, account, month);
	const present = new Map(model);
	model.clear();
	const { name, charged } = await use(account, `${month}-28T23:00:00Z`);
	note("2000", "4000", charged);
	await foldAll(statements);
	present.set(`4000 ${name}`, (present.get(`4000 ${name}`) ?? 0) - charged);
	present.set("4000", (present.get("4000") ?? 0) + charged);
	return present;
}

const inBooks = (sums: Map<string, number>) => [...sums].filter(([, amount]) => amount !== 0).sort();

test("monthly journals equal a simple model and the statements", async () => {
	for (const id of ACCOUNTS) {
		await sql`insert into account (id, email, name, created_at) values (${id}, ${`${id}@example.com`}, ${id}, '2026-05-02')`;
		await sql`insert into budget (id, kind, account_id, limit_nano_usd) values (${id}, 'account', ${id}, 0)`;
	}
	const written: unknown[] = [];
	for (const month of MONTHS) {
		await play(month);
		const expected = month === MONTHS[1] ? await settleLater("acc_b", month) : new Map(model);
		if (month !== MONTHS[1]) model.clear();
		await Promise.all([closeJournals(statements), closeJournals(statements)]);
		const journal = await readJournal(statements, month);
		const sums = new Map<string, number>();
		let [debit, credit] = [0, 0];
		for (const { account, model: name, debit_usd, credit_usd } of journalLines(journal)) {
			debit += Math.round(Number(debit_usd) * 1e9);
			credit += Math.round(Number(credit_usd) * 1e9);
			const place = account === "4000" && name !== null ? `4000 ${name}` : account;
			sums.set(place, (sums.get(place) ?? 0) + Math.round((Number(debit_usd) - Number(credit_usd)) * 1e9));
		}
		expect(debit).toBe(credit);
		expect(inBooks(sums)).toEqual(inBooks(expected));
		const all = await Promise.all(ACCOUNTS.map((id) => readStatement(statements, id, month)));
		const sum = (amount: (one: (typeof all)[number]) => bigint) => all.reduce((total, one) => total + amount(one), 0n);
		expect(journal.deferredNanoUsd + journal.promotionalNanoUsd).toBe(sum((one) => one.closingNanoUsd));
		const unspent = [...left.values()].reduce((total, amount) => total + amount, model.get("2100") ?? 0);
		expect(journal.promotionalNanoUsd).toBe(BigInt(unspent));
		const revenue = [...sums]
			.filter(([place]) => place.startsWith("4000"))
			.reduce((total, [, amount]) => total - amount, 0);
		expect(sum((one) => one.usageNanoUsd + one.lateNanoUsd)).toBe(BigInt(revenue));
		expect(sum((one) => one.promotionUsedNanoUsd)).toBe(BigInt(sums.get("4100") ?? 0));
		written.push(journal);
		const csv = journalCsv(journal).trimEnd().split("\r\n");
		expect(csv).toHaveLength(1 + 2 * journal.entries.length);
		expect(csv[1]).toMatch(new RegExp(`^${month},1,1000,Bank,,0\\.\\d+,,Top-ups by bank transfer$`));
	}
	for (const [at, month] of MONTHS.entries())
		expect(await readJournal(statements, month)).toEqual(written[at] as never);
	expect((await listJournals(statements)).map(({ month }) => month)).toEqual(MONTHS.toReversed());
	await expect(readJournal(statements, "2026-09")).rejects.toMatchObject({ code: "not_found" });
});
