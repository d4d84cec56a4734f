/** Books that version 0.1 left behind: its crashes charged the bound, and gave back the rest in a note. */
import { expect, test } from "bun:test";
import { systemClock } from "../../src/base/clock.ts";
import { silentLog } from "../../src/base/log.ts";
import { searchAccounts } from "../../src/console/operator/operator-accounts.ts";
import { foldUsage } from "../../src/console/usage/usage-fold.ts";
import { creditsAnswer } from "../../src/gateway/lookups/credits.ts";
import { usageAnswer } from "../../src/gateway/lookups/usage-lookup.ts";
import { createAccount } from "../../src/keys/account-admin.ts";
import { createDigest } from "../../src/keys/digest.ts";
import { createKey, getKey } from "../../src/keys/key-admin.ts";
import { accountBalance, keyBalance } from "../../src/ledger/balance.ts";
import { createNetting } from "../../src/ledger/netting.ts";
import { createPgLedgerStore } from "../../src/ledger/pg-store.ts";
import { reconcile } from "../../src/ledger/reconcile.ts";
import { formatUsd } from "../../src/money/nano-usd.ts";
import { withDatabase } from "../support/database.ts";
import { foldAll, rebuildAll } from "../support/sums.ts";
import { goLive, patient, settledEvent, usd, wish } from "./fixture.ts";

const db = await withDatabase();
const { statements, sql } = db;
const PAID = 1_000_000_000;
const netting = () => createNetting({ statements, log: silentLog });
const maker = { statements, digest: createDigest("pepper"), serviceName: "service" };

interface Crashed {
	readonly id: string;
	readonly charged: number;
	readonly delivered: number;
}

/** An account that has paid in a dollar, and requests of a key that an instance of 0.1 lost and recovered. */
async function former(name: string, requests: readonly [charged: number, delivered: number][]) {
	const accountId = (await createAccount(statements, { email: `${name}@example.com`, vouched: true })).id;
	await sql`select ledger_book(${`led_${name}`}, ${accountId}, 'adjustment', ${PAID}, ${`opening:${name}`}, 'test', '', false)`;
	const { id: keyId } = await createKey(maker, accountId, { name, capNanoUsd: usd(PAID / 2) });
	const epoch = await goLive(db, name);
	const store = patient(createPgLedgerStore({ statements: db.ledger }, name, epoch));
	const bound = requests.reduce((sum, [charged]) => sum + charged, 0);
	await store.grant([wish(accountId, bound), wish(keyId, bound)]);
	const crashed: Crashed[] = [];
	const events = requests.map(([charged]) =>
		settledEvent(accountId, keyId, charged, { basis: "recovered", ending: "crashed", status: 500 }),
	);
	await store.flush(events, "[]");
	const notes = requests.map(([charged, delivered], at) => ({ id: events[at]?.id, amount: charged - delivered }));
	await sql`
		select ledger_book('led_' || (n ->> 'id'), ${accountId}, 'credit_note', (n ->> 'amount')::bigint, 'recovered:' || (n ->> 'id'), 'recovery', '', false)
		from jsonb_array_elements(${JSON.stringify(notes)}::text::jsonb) n where (n ->> 'amount')::bigint > 0`;
	for (const [at, [charged, delivered]] of requests.entries())
		crashed.push({ id: events[at]?.id as string, charged, delivered });
	await store.close();
	return { accountId, keyId, crashed };
}

/** Every place that says what was spent, in nano-dollars. */
async function saidSpent({ accountId, keyId, crashed }: Awaited<ReturnType<typeof former>>) {
	const [hours] =
		await sql`select coalesce(sum(charged_nano_usd), 0)::bigint as spent from usage_hour where key_id = ${keyId}`;
	const { data } = await creditsAnswer(statements, accountId);
	const [row] = await searchAccounts(statements, accountId, { asked: 1, after: null });
	let lookups = 0;
	for (const { id } of crashed) {
		const { cost_usd } = await usageAnswer({ statements, clock: systemClock }, accountId, id);
		lookups += Math.round(Number(cost_usd) * 1e9);
	}
	const key = await keyBalance(statements, keyId);
	return {
		account: Number((await accountBalance(statements, accountId)).spent),
		key: Number(key.spent),
		cap: PAID / 2 - Number(key.remaining),
		keyList: Number((await getKey(statements, { id: keyId })).spentNanoUsd),
		credits: Math.round(data.total_usage * 1e9),
		operators: Number(row?.spentNanoUsd),
		hours: Number(hours?.spent),
		lookups,
	};
}
const all = (spent: number) => ({
	account: spent,
	key: spent,
	cap: spent,
	keyList: spent,
	credits: spent,
	operators: spent,
	hours: spent,
	lookups: spent,
});
const paidIn = async (accountId: string) =>
	Number((await creditsAnswer(statements, accountId)).data.total_credits) * 1e9;
const sound = async () => (await reconcile(statements)).checks.filter(({ ok }) => !ok);
const anHourAgo = (keyId: string) =>
	sql`update usage_event set settled_at = clock_timestamp() - interval '1 hour' where key_id = ${keyId}`;

test("spent is net of the notes everywhere, total is what was paid in, and what a cap counted too much is free again", async () => {
	const books = await former("plain", [
		[1000, 300],
		[700, 700],
		[900, 0],
		[50_001, 50_000],
	]);
	await anHourAgo(books.keyId);
	await rebuildAll(statements);
	expect((await saidSpent(books)).account).toBe(1000 + 700 + 900 + 50_001);
	const [before] = await sql`select drawn_nano_usd from budget where id = ${books.keyId}`;
	const available = (await accountBalance(statements, books.accountId)).available;
	expect(await netting().netSome()).toBe(3);
	expect(await saidSpent(books)).toEqual(all(300 + 700 + 50_000));
	expect(await paidIn(books.accountId)).toBe(PAID);
	// The customer neither gains nor loses by it.
	expect((await accountBalance(statements, books.accountId)).available).toBe(available);
	const [after] = await sql`select drawn_nano_usd from budget where id = ${books.keyId}`;
	expect(Number(before?.drawn_nano_usd) - Number(after?.drawn_nano_usd)).toBe(700 + 900 + 1);
	// Sums that go on, and sums that are made anew, say the same.
	await foldUsage(statements);
	expect(await saidSpent(books)).toEqual(all(300 + 700 + 50_000));
	await rebuildAll(statements);
	expect(await saidSpent(books)).toEqual(all(300 + 700 + 50_000));
	expect(formatUsd(usd(Number((await saidSpent(books)).account)))).toBe("0.000051");
	expect(await sound()).toEqual([]);
});

test("whoever nets beside others, breaks off or begins anew, each note is netted once", async () => {
	const requests = Array.from({ length: 130 }, (_, nth): [number, number] => [1000 + nth * 100, nth * 100]);
	const books = await former("many", requests);
	await anHourAgo(books.keyId);
	await rebuildAll(statements);
	const delivered = requests.reduce((sum, [, one]) => sum + one, 0);
	// A call does a bounded part.
	const first = netting();
	expect(await first.netSome()).toBe(100);
	expect((await saidSpent(books)).account).toBe(delivered + 30 * 1000);
	await Promise.all([first.netSome(), netting().netSome(), netting().netSome(), netting().netSome()]);
	while ((await netting().netSome()) > 0);
	expect(await saidSpent(books)).toEqual(all(delivered));
	expect(await paidIn(books.accountId)).toBe(PAID);
	const [entries] =
		await sql`select count(*)::int as count from ledger_entry where account_id = ${books.accountId} and source_ref like 'netted:%'`;
	expect(entries?.count).toBe(130);
	expect(await sound()).toEqual([]);
});

test("a request that the next fold may still read is left until that is over", async () => {
	const books = await former("fresh", [[1000, 400]]);
	await foldAll(statements);
	expect(await netting().netSome()).toBe(0);
	expect((await saidSpent(books)).hours).toBe(1000);
	await sql`update usage_event set settled_at = clock_timestamp() - interval '115 seconds' where key_id = ${books.keyId}`;
	await rebuildAll(statements);
	expect(await netting().netSome()).toBe(0);
	await sql`update usage_cursor set folded_at = folded_at + interval '10 seconds'`;
	expect(await netting().netSome()).toBe(1);
	await foldUsage(statements);
	expect(await saidSpent(books)).toEqual(all(400));
	expect(await sound()).toEqual([]);
}, 90_000);

test("a note without its request waits for a day and stays as it is then; other movements are no notes of 0.1", async () => {
	const books = await former("odd", [[1000, 400]]);
	await sql`delete from usage_event where key_id = ${books.keyId}`;
	await sql`select ledger_book('led_other', ${books.accountId}, 'credit_note', 5, 'by hand', 'cli', '', false)`;
	await sql`update ledger_entry set created_at = clock_timestamp() - interval '2 days' where id = 'led_other'`;
	expect(await netting().netSome()).toBe(0);
	const waiting = () =>
		sql`select source_ref from ledger_entry where account_id = ${books.accountId} and kind = 'credit_note' and not netted`;
	expect((await waiting()).length).toBe(1);
	await sql`update ledger_entry set created_at = clock_timestamp() - interval '2 days' where account_id = ${books.accountId}`;
	expect(await netting().netSome()).toBe(0);
	expect((await waiting()).length).toBe(0);
	expect((await accountBalance(statements, books.accountId)).balance).toBe(usd(PAID - 1000 + 600 + 5));
});

test("a request of a day that is sealed is never changed: its note stays as it is", async () => {
	const books = await former("sealed", [[1000, 400]]);
	await anHourAgo(books.keyId);
	await rebuildAll(statements);
	await sql`
		insert into sealing (id, day, entries_from, closed_until, usage_at, usage_id, usage_hash, op_at, op_id)
		values (1, current_date, '-infinity', clock_timestamp(), '-infinity', ${books.crashed[0]?.id ?? ""}, ''::bytea, '-infinity', gen_random_uuid())`;
	expect(await netting().netSome()).toBe(0);
	expect((await saidSpent(books)).account).toBe(1000);
	expect(
		(
			await sql`select 1 from ledger_entry where account_id = ${books.accountId} and kind = 'credit_note' and not netted`
		).length,
	).toBe(0);
	await sql`delete from sealing`;
});
