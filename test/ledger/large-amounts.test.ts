import { expect, test } from "bun:test";
import { newUuid } from "../../src/base/id.ts";
import { createPgLedgerStore } from "../../src/ledger/pg-store.ts";
import { MAX_NANO_USD } from "../../src/money/nano-usd.ts";
import { withDatabase } from "../support/database.ts";
import { goLive, makeAccount, settledEvent, usd, wish } from "./fixture.ts";

const db = await withDatabase();

const book = (account: string, amount: number, forced = false) =>
	db.statements`select ledger_book(${newUuid()}, ${account}, 'adjustment', ${amount}::bigint, ${newUuid()}, 'test', '', ${forced})`;

test("whatever books it, no account holds more than can be counted in one number; what it has spent leaves room again", async () => {
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

test("an account that an earlier version gave back more than can be counted is served, and so are those that ask beside it", async () => {
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
