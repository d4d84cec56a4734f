import { expect, test } from "bun:test";
import { listTopUps } from "../../src/billing/top-ups.ts";
import { ensureDemoAccount } from "../../src/demo/demo-account.ts";
import { findAccount } from "../../src/keys/account-admin.ts";
import { createDigest } from "../../src/keys/digest.ts";
import { listKeys, revokeKey } from "../../src/keys/key-admin.ts";
import { accountBalance } from "../../src/ledger/balance.ts";
import { withDatabase } from "../support/database.ts";

const now = { nowMs: Date.now(), newPepper: false };

const db = await withDatabase();
const maker = { statements: db.statements, digest: createDigest("a pepper"), serviceName: "service" };

test("the first start makes a signed-in account with a confirmed USD 100 and one key", async () => {
	const account = await ensureDemoAccount(maker, now);
	expect(account.secret).toStartWith("sk_service_");
	expect(account.secret).toEndWith(account.key.lastFour);
	expect(await findAccount(db.statements, account.id)).toMatchObject({
		toppedUp: true,
		signedInAtMs: expect.any(Number),
	});
	expect((await accountBalance(db.statements, account.id)).available as number).toBe(100e9);
});

test("a later start finds all of it and makes no key", async () => {
	const again = await ensureDemoAccount(maker, now);
	expect(again.secret).toBeUndefined();
	expect((await listKeys(db.statements, again.id)).items).toHaveLength(1);
	expect((await listTopUps(db.statements, { accountId: again.id })).items).toHaveLength(1);
	expect((await accountBalance(db.statements, again.id)).available as number).toBe(100e9);
});

test("a start without a key that works makes one", async () => {
	const { id } = await ensureDemoAccount(maker, now);
	const [key] = (await listKeys(db.statements, id)).items;
	await revokeKey(db.statements, { id: key?.id ?? "" });
	expect((await ensureDemoAccount(maker, now)).secret).toStartWith("sk_service_");
	expect((await ensureDemoAccount(maker, now)).secret).toBeUndefined();
});

test("a key that this service could not read any more does not count", async () => {
	expect((await ensureDemoAccount({ ...maker, serviceName: "acme" }, now)).secret).toStartWith("sk_acme_");
	expect((await ensureDemoAccount(maker, { ...now, newPepper: true })).secret).toStartWith("sk_service_");
});
