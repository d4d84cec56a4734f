import { expect, test } from "bun:test";
import { newId } from "../../src/base/id.ts";
import { bookAdjustment, confirmAdjustment } from "../../src/billing/adjustments.ts";
import { createAccount } from "../../src/keys/account-admin.ts";
import { MAX_NANO_USD, NANO_PER_USD, nanoUsd } from "../../src/money/nano-usd.ts";
import { withDatabase } from "../support/database.ts";

const db = await withDatabase();
const usd = (amount: number) => nanoUsd(amount * NANO_PER_USD);

async function account(): Promise<string> {
	return (await createAccount(db.statements, { email: `${newId("acc")}@example.com`, vouched: true })).id;
}

/** Books a hundred adjustments of USD 100,000 in a day, whose sum exceeds the largest amount of one adjustment. */
async function operatorWho(booked: string): Promise<string> {
	const operatorId = newId("usr");
	await db.sql`
		insert into credit_adjustment (id, account_id, amount_nano_usd, reason, idempotency_key, state, first_by)
		select 'adj_' || ${operatorId} || n, ${await account()}, case when n % 2 = 0 then -1 else 1 end * ${booked}::bigint, 'test',
			${operatorId} || n, 'booked', ${operatorId} from generate_series(1, 100) n`;
	return operatorId;
}

test("adjustments of one operator above the threshold wait for a second operator", async () => {
	for (const [booked, line, state] of [
		["100000000000000", usd(10_000), "pending"],
		["100000000000000", MAX_NANO_USD, "pending"],
		["90071992547409", MAX_NANO_USD, "pending"],
		["90071992547408", MAX_NANO_USD, "booked"],
		["100000000000000", null, "booked"],
	] as const) {
		const asked = {
			...{ accountId: await account(), amount: nanoUsd(91), reason: "test", idempotencyKey: crypto.randomUUID() },
			...{ operatorId: await operatorWho(booked), ip: null },
		};
		expect([booked, line, (await bookAdjustment(db.tx, asked, line)).state]).toEqual([booked, line, state]);
	}
});

test("a new adjustment has the time of its first confirmation and no second one", async () => {
	const asked = { accountId: await account(), amount: usd(1), reason: "test", operatorId: "usr_time", ip: null };
	const made = await bookAdjustment(db.tx, { ...asked, idempotencyKey: crypto.randomUUID() }, null);
	expect(Math.abs(made.firstAtMs - Date.now())).toBeLessThan(60_000);
	expect(made.secondAtMs).toBeNull();
});

test("an adjustment beyond 2^53 nano-dollars is refused, not rounded", async () => {
	const accountId = await account();
	await db.sql`
		insert into credit_adjustment (id, account_id, amount_nano_usd, reason, idempotency_key, state, first_by)
		values ('adj_beyond', ${accountId}, -9007199254740993, 'test', 'beyond', 'pending', 'usr_first')`;
	const confirmed = confirmAdjustment(db.tx, { id: "adj_beyond", operatorId: "usr_second", ip: null });
	await expect(confirmed).rejects.toThrow("safe integers");
	const [row] = await db.sql`select state from credit_adjustment where id = 'adj_beyond'`;
	expect(row?.state).toBe("pending");
});
