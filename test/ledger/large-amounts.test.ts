import { expect, test } from "bun:test";
import { newUuid } from "../../src/base/id.ts";
import { searchAccounts } from "../../src/console/operator/operator-accounts.ts";
import { listInstances } from "../../src/console/operator/operator-cluster.ts";
import { createAccount } from "../../src/keys/account-admin.ts";
import { accountBalance, keyBalance } from "../../src/ledger/balance.ts";
import { createPgLedgerStore } from "../../src/ledger/pg-store.ts";
import { MAX_NANO_USD } from "../../src/money/nano-usd.ts";
import { withDatabase } from "../support/database.ts";
import { goLive, makeAccount, settledEvent, usd, wish } from "./fixture.ts";

const db = await withDatabase();

const book = (account: string, amount: number, forced = false) =>
	db.statements`select ledger_book(${newUuid()}, ${account}, 'adjustment', ${amount}::bigint, ${newUuid()}, 'test', '', ${forced})`;

test("a booking is refused if the account's credit would exceed 2^53 nano-dollars", async () => {
	await makeAccount(db, "full", MAX_NANO_USD - 10, { "full-key": null });
	await goLive(db, "full");
	const store = createPgLedgerStore({ statements: db.ledger }, "full", 1);
	await store.grant([wish("full", 100), wish("full-key", 100)]);
	await expect(book("full", 11)).rejects.toMatchObject({ code: "TG004" });
	await book("full", 10);
	await expect(book("full", 1)).rejects.toMatchObject({ code: "TG004" });
	await store.flush([settledEvent("full", "full-key", 60)], "[]");
	await expect(book("full", 61)).rejects.toMatchObject({ code: "TG004" });
	await expect(book("full", 61, true)).rejects.toMatchObject({ code: "TG004" });
	await book("full", 60);
});

test("accounts get grants even if one account's credit exceeds 2^53 nano-dollars", async () => {
	await makeAccount(db, "rich", MAX_NANO_USD, {});
	await makeAccount(db, "beside", 1_000, {});
	await db.sql`update budget set limit_nano_usd = limit_nano_usd + 5 where id = 'rich'`;
	await goLive(db, "beside");
	const store = createPgLedgerStore({ statements: db.ledger }, "beside", 1);
	const replies = await store.grant([wish("rich", 2), wish("beside", 100)]);
	expect(replies.map(({ amount, available }) => [amount, available])).toEqual([
		[usd(2), MAX_NANO_USD],
		[usd(100), usd(900)],
	]);
});

test("the remaining cap is rounded if the spending exceeds 2^53 nano-dollars", async () => {
	await makeAccount(db, "long", 1_000, { "long-key": null });
	for (const epoch of [1, 2])
		await db.sql`
			insert into lease (budget_id, instance_id, epoch, granted_nano_usd, settled_nano_usd, state)
			values ('long-key', 'gone', ${epoch}, ${MAX_NANO_USD}::bigint, ${MAX_NANO_USD}::bigint, 'closed')`;
	expect((await keyBalance(db.statements, "long-key")).remaining).toBe(null);
	await db.sql`update budget set limit_nano_usd = 1000 where id = 'long-key'`;
	const { cap, capSpent, remaining } = await keyBalance(db.statements, "long-key");
	expect([cap, capSpent, remaining]).toEqual([usd(1_000), 2 * MAX_NANO_USD, 1_000 - 2 * MAX_NANO_USD] as never);
	const period = { cap: usd(1_000), budget: "long-key" };
	expect((await keyBalance(db.statements, "long-key", period)).remaining).toBe(remaining);
});

test("the list of accounts includes an account with more than 2^53 nano-dollars", async () => {
	const { id } = await createAccount(db.statements, { email: "full@example.com", vouched: true });
	await createAccount(db.statements, { email: "beside@example.com", vouched: true });
	await db.sql`update budget set limit_nano_usd = ${`${MAX_NANO_USD + 1}`}::bigint where id = ${id}`;
	expect((await accountBalance(db.statements, id)).available).toBe((MAX_NANO_USD + 1) as never);
	const rows = await searchAccounts(db.statements, null, { asked: 10, after: null });
	expect(rows.map(({ email, balanceNanoUsd }) => [email, balanceNanoUsd])).toEqual([
		["beside@example.com", usd(0)],
		["full@example.com", (MAX_NANO_USD + 1) as never],
	]);
});

test("an instance's credit for all accounts may exceed 2^53 nano-dollars", async () => {
	await goLive(db, "lender");
	for (const account of ["acc_a", "acc_b"])
		await db.sql`
			insert into lease (budget_id, instance_id, epoch, granted_nano_usd) values (${account}, 'lender', 1, ${MAX_NANO_USD}::bigint)`;
	const rows = await listInstances(db.statements);
	expect(rows.find(({ id }) => id === "lender")?.heldNanoUsd).toBe((2 * MAX_NANO_USD) as never);
});
