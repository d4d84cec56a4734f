import { expect, test } from "bun:test";
import { isMailAddress } from "../../src/base/mail-address.ts";
import { createAccount, findAccount } from "../../src/keys/account-admin.ts";
import { withDatabase } from "../support/database.ts";

const db = await withDatabase();

test("an account needs an e-mail address, from which its name is derived", async () => {
	for (const [email, isOne] of [
		["a@b", true],
		["o'neil+x@example.com", true],
		[`${"x".repeat(200)}@example.com`, true],
		[`${"x".repeat(201)}@example.com`, true],
		[`${"x".repeat(308)}@example.com`, true],
		[`${"x".repeat(309)}@example.com`, false],
		[`${"x".repeat(199)}\u{1f600}@example.com`, true],
		["a@b,", false],
		["a;b@c", false],
		["<a@b>", false],
		['"a"@b', false],
		["a@b\u0001", false],
		["\u0001a@b", false],
		["\u202ea@b", false],
		["\ud800a@b", false],
		["a@b@c", false],
		["@b", false],
		["a@", false],
	] as const) {
		expect([email, isMailAddress(email)]).toEqual([email, isOne]);
		const made = await createAccount(db.statements, { email, vouched: true }).then(
			() => true,
			(error) => error.param,
		);
		expect([email, made]).toEqual([email, isOne ? true : "email"]);
		if (isOne) expect(email.startsWith((await findAccount(db.statements, email))?.name ?? "none")).toBe(true);
	}
});
