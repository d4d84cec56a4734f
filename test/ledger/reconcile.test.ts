import { expect, test } from "bun:test";
import { newUuid } from "../../src/base/id.ts";
import { createPgLedgerStore } from "../../src/ledger/pg-store.ts";
import { reconcile } from "../../src/ledger/reconciler.ts";
import { rolledBack, withDatabase } from "../support/database.ts";
import { giving, goLive, makeAccount, settledEvent, wish } from "./fixture.ts";

const db = await withDatabase();
await makeAccount(db, "acc", 10_000, { key: 5_000 });
await goLive(db, "i");
const store = createPgLedgerStore({ statements: db.ledger }, "i", 1);
await store.grant([wish("acc", 1_000), wish("key", 1_000)]);
const open = { ...settledEvent("acc", "key", 0), id: newUuid() };
await store.flush([settledEvent("acc", "key", 100)], JSON.stringify([open]));
await store.giveBack([giving("acc", 300)]);

const broken = async () => (await reconcile(db.statements)).checks.filter(({ ok }) => !ok).map(({ name }) => name);

test("correct books pass every check", async () => {
	expect(await broken()).toEqual([]);
});

/** SQL that corrupts the books, with the check that must report it. Other checks may report it too. */
const corruptions: [string, string][] = [
	[
		"an account's credit is the sum of its ledger entries",
		"update budget set limit_nano_usd = limit_nano_usd + 1 where id = 'acc'",
	],
	["an account's credit is the sum of its ledger entries", "delete from ledger_entry"],
	[
		"a budget's drawn amount equals what its leases hold and have spent",
		"update budget set drawn_nano_usd = drawn_nano_usd - 1 where id = 'key'",
	],
	["a budget's drawn amount equals what its leases hold and have spent", "delete from lease where budget_id = 'key'"],
	["no budget is overdrawn", "update budget set limit_nano_usd = 5 where id = 'acc'"],
	[
		"granted and returned amounts are the sums of their operations",
		"update lease_op set amount_nano_usd = amount_nano_usd + 1 where kind = 'return'",
	],
	[
		"granted and returned amounts are the sums of their operations",
		"update lease set granted_nano_usd = granted_nano_usd + 1",
	],
	[
		"a lease's settled amount is the sum of its charges",
		"update lease set settled_nano_usd = settled_nano_usd - 1 where budget_id = 'key'",
	],
	[
		"a lease's settled amount is the sum of its charges",
		"update usage_event set charged_nano_usd = charged_nano_usd - 1",
	],
	["every charge has its lease", "update usage_event set epoch = 9"],
	["no lease of an ended instance is open", "update instance_beat set state = 'left'"],
	[
		"no settled request is still shown as running",
		"update reservation set request_id = (select request_id from usage_event)",
	],
	[
		"every confirmed top-up is booked once, and no other top-up is booked",
		"insert into top_up (id, account_id, amount_nano_usd, method, reference, state) values ('t', 'acc', 5, 'transfer', 'r', 'confirmed')",
	],
	[
		"every confirmed top-up is booked once, and no other top-up is booked",
		"insert into ledger_entry (id, account_id, kind, amount_nano_usd, source_ref, actor) values ('e', 'acc', 'top_up', 5, 'topup:none', 'x')",
	],
];

for (const [name, statement] of corruptions) {
	test(`the books check detects: ${statement}`, async () => {
		// Corrupts the books in a transaction that is rolled back, so that each corruption starts from correct books.
		const found: string[] = [];
		await rolledBack(db.sql, async (transaction, statements) => {
			await transaction.unsafe(statement);
			found.push(...(await reconcile(statements)).checks.filter(({ ok }) => !ok).map((check) => check.name));
		});
		expect(found).toContain(name);
		expect(await broken()).toEqual([]);
	});
}
