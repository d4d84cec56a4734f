import { expect, test } from "bun:test";
import { newId } from "../../src/base/id.ts";
import { createAccount, updateAccount } from "../../src/keys/account-admin.ts";
import { NANO_PER_USD } from "../../src/money/nano-usd.ts";
import { withDatabase } from "../support/database.ts";
import { statementsWithFixedNow } from "../support/fixed-now.ts";

/** Tests the monthly limit in the account's time zone while the zone changes around the ends of months. */

const db = await withDatabase();
const { sql } = db;
const statements = await statementsWithFixedNow(db, Date.parse("2026-11-30T11:00:00Z"));
const setNow = (iso: string) =>
	sql.unsafe(
		`create or replace function fixed.now() returns timestamptz language sql stable as $$ select timestamptz '${iso}' $$`,
	);

test("the monthly top-up limit holds if a change of time zone repeats a month", async () => {
	const { id } = await createAccount(db.statements, { email: "ann@example.com", vouched: true });
	const usd = (amount: number) => amount * NANO_PER_USD;
	await sql`insert into saved_card (account_id, customer_id, payment_method_id) values (${id}, 'cus_1', 'pm_1')`;
	await sql`
		insert into auto_top_up (account_id, below_nano_usd, amount_nano_usd, month_most_nano_usd, state)
		values (${id}, ${usd(20)}, ${usd(100)}, ${usd(250)}, 'on')`;
	/** Lets the account buy and spend at this time and in this zone up to its limit. Returns the number of purchases. */
	async function bought(at: string, timeZone: string): Promise<number> {
		await setNow(at);
		await updateAccount(db.statements, id, { timeZone });
		for (let count = 0; count < 10; count++) {
			const [row] = await statements<{ begun: boolean }>`
				select auto_top_up_begin(${id}, ${newId("att")}, ${newId("top")}, ${newId("ref")}) as begun`;
			if (!row?.begun) return count;
			await sql`update auto_top_up_attempt set state = 'succeeded', begun_at = ${at} where account_id = ${id} and state = 'begun'`;
		}
		return 10;
	}
	expect(await bought("2026-11-15T12:00:00Z", "UTC")).toBe(2);
	expect(await bought("2026-11-30T11:00:00Z", "UTC")).toBe(0);
	expect(await bought("2026-11-30T11:00:00Z", "Pacific/Kiritimati")).toBe(2);
	expect(await bought("2026-11-30T11:30:00Z", "UTC")).toBe(0);
	expect(await bought("2026-12-01T12:00:00Z", "UTC")).toBe(0);
	expect(await bought("2026-12-31T23:00:00Z", "America/Los_Angeles")).toBe(0);
	expect(await bought("2027-01-01T00:00:00Z", "UTC")).toBe(2);
	// In the new zone it is still December, whose limit is used up.
	expect(await bought("2027-01-01T00:30:00Z", "America/Los_Angeles")).toBe(0);
	expect(await bought("2027-01-31T23:59:59Z", "UTC")).toBe(0);
	expect(await bought("2027-02-01T00:00:00Z", "UTC")).toBe(2);
});
