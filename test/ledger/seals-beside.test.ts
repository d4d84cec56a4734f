/** Tests of two consoles that seal, verify and check days while late settlements arrive. */
import { expect, test } from "bun:test";
import { newUuid } from "../../src/base/id.ts";
import { createPgLedgerStore } from "../../src/ledger/pg-store.ts";
import { reconcile } from "../../src/ledger/reconciler.ts";
import { withDatabase } from "../support/database.ts";
import { goLive, makeAccount, retrying, settledEvent, wish } from "./fixture.ts";

const ACCOUNTS = ["a", "b", "c"];
const EPOCHS = 8;
const LATE = 120;

const db = await withDatabase();
const { statements } = db;
const broken = async () => (await reconcile(statements)).checks.filter(({ ok }) => !ok);
const keyOf = (account: string) => `key-${account}`;

for (const account of ACCOUNTS) await makeAccount(db, account, 10_000_000, { [keyOf(account)]: null });
for (let epoch = 1; epoch <= EPOCHS; epoch++) {
	await goLive(db, "i");
	const store = retrying(createPgLedgerStore({ statements: db.ledger }, "i", epoch));
	for (const account of ACCOUNTS) {
		await store.grant([wish(account, 1_000), wish(keyOf(account), 1_000)]);
		const events = [10, 3].map((charged) => settledEvent(account, keyOf(account), charged));
		await store.flush(events, "[]");
	}
	await store.close();
}
await db.sql`update usage_event set settled_at = settled_at - (2 + epoch % 3) * interval '1 day'`;
await db.sql`update lease_op set at = at - (2 + epoch % 3) * interval '1 day'`;
await db.sql`update ledger_entry set created_at = created_at - interval '5 days'`;

test("checks of books and seals find no fault during sealing and late settlements", async () => {
	let isSealed = false;
	let late = 0;
	const found: unknown[] = [];
	const until = async (work: () => Promise<void>) => {
		while (!(isSealed && late >= LATE) && found.length === 0) await work();
	};
	const seal = async () => {
		const [row] = await statements<{ state: string }>`select state from books_seal(5)`;
		await statements`select books_seal_leases(2)`;
		if (row?.state === "idle") isSealed = true;
	};
	const settle = async (account: string, epoch: number) => {
		late++;
		const event = { ...settledEvent(account, keyOf(account), 5), id: newUuid() };
		await statements`select ledger_settle_late('i', ${epoch}, ${JSON.stringify(event)}::text::json)`;
	};
	// Settles a late request of any epoch but the last, whose late settlements must follow the sealing of its leases.
	const settleLate = () => settle(ACCOUNTS[late % ACCOUNTS.length] ?? "", 1 + (late % (EPOCHS - 1)));
	const check = async () => {
		found.push(...(await broken()));
	};
	const verify = async () => {
		await statements`select books_verify(3)`;
		await statements`update seal_round set started_at = now() - interval '2 hours'`;
	};
	await Promise.all([seal, seal, settleLate, settleLate, check, verify].map(until));
	expect(found).toEqual([]);
	await statements`select books_seal_leases(1000)`;
	const sealed = () => db.sql`select budget_id from lease where sealed and epoch = ${EPOCHS}`;
	expect(await sealed()).toHaveLength(2 * ACCOUNTS.length);
	await Promise.all(ACCOUNTS.map((account) => settle(account, EPOCHS)));
	expect(await sealed()).toHaveLength(0);
	expect(await broken()).toEqual([]);
	const [rows] = await db.sql`select count(*)::integer as late from usage_event where charged_nano_usd = 5`;
	expect(rows?.late).toBe(late);
}, 60_000);
