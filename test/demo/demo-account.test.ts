import { expect, test } from "bun:test";
import { listTopUps } from "../../src/billing/top-ups.ts";
import { ensureDemoAccount } from "../../src/demo/demo.ts";
import { findAccount } from "../../src/keys/account-admin.ts";
import { listKeys, revokeKey } from "../../src/keys/key-admin.ts";
import { createDigest } from "../../src/keys/secret.ts";
import { accountBalance } from "../../src/ledger/balance.ts";
import { withDatabase } from "../support/database.ts";

const now = { nowMs: Date.now(), newPepper: false };

const db = await withDatabase();
const maker = { statements: db.statements, digest: createDigest("a pepper"), serviceName: "service" };

test("the first start creates a signed-in account with USD 100, one key", async () => {
	const account = await ensureDemoAccount(maker, now);
	expect(account.secret).toStartWith("sk_service_");
	expect(account.secret).toEndWith(account.key.lastFour);
	expect(await findAccount(db.statements, account.id)).toMatchObject({
		toppedUp: true,
		signedInAtMs: expect.any(Number),
	});
	expect((await accountBalance(db.statements, account.id)).available as number).toBe(100e9);
});

test("a later start finds the account, creates no key", async () => {
	const again = await ensureDemoAccount(maker, now);
	expect(again.secret).toBeUndefined();
	expect((await listKeys(db.statements, again.id)).items).toHaveLength(1);
	expect((await listTopUps(db.statements, { accountId: again.id })).items).toHaveLength(1);
	expect((await accountBalance(db.statements, again.id)).available as number).toBe(100e9);
});

test("a start without a usable key creates a key", async () => {
	const { id } = await ensureDemoAccount(maker, now);
	const [key] = (await listKeys(db.statements, id)).items;
	await revokeKey(db.statements, { id: key?.id ?? "" });
	expect((await ensureDemoAccount(maker, now)).secret).toStartWith("sk_service_");
	expect((await ensureDemoAccount(maker, now)).secret).toBeUndefined();
});

test("a key that this service cannot read does not count as usable", async () => {
	expect((await ensureDemoAccount({ ...maker, serviceName: "acme" }, now)).secret).toStartWith("sk_acme_");
	expect((await ensureDemoAccount(maker, { ...now, newPepper: true })).secret).toStartWith("sk_service_");
});
