import { expect, test } from "bun:test";
import { nanoUsd } from "../../src/money/nano-usd.ts";
import { newMail } from "../console/mailbox.ts";
import { PERSON_ENV, signedUp } from "../console/person.ts";
import { ask } from "../support/chat.ts";
import { payIn } from "../support/paid-account.ts";
import { withChat } from "../support/service.ts";
import { managementClient } from "./management-client.ts";

const { service } = await withChat({ env: PERSON_ENV });
const script = await managementClient(service);

test("a management key gets no secret of an account with owners", async () => {
	const ann = await signedUp(service);
	const token = { client_token: "repeated" };
	const keys = [
		await script.send("POST", "/keys", { account_id: ann.accountId, name: "made" }),
		await script.send("POST", "/keys", { account_id: ann.accountId, name: "again", ...token }),
		await script.send("POST", "/keys", { account_id: ann.accountId, name: "again", ...token }),
	];
	keys.push(await script.send("POST", `/keys/${keys[0]?.body.id}/rotate`, { grace_seconds: 60 }));
	for (const { status, body } of keys) expect([status, body.secret]).toEqual([200, null]);
	const { id } = keys.at(-1)?.body ?? {};
	expect((await newMail(ann.email)).text).toContain("/keys/key_");
	const rotated = await ann.send("POST", `/api/console/keys/${id}/rotate`, { graceMs: 0 });
	await payIn(service.db.statements, ann.accountId, nanoUsd(100e9));
	expect((await service.post("/v1/chat/completions", rotated.body.secret, ask())).status).toBe(200);
});

test("a management key gets the secrets of an account without owners", async () => {
	const { body: account } = await script.send("POST", "/accounts", { email: "terraform@example.com" });
	const made = await script.send("POST", "/keys", { account_id: account.id, name: "made" });
	const rotated = await script.send("POST", `/keys/${made.body.id}/rotate`, { grace_seconds: 60 });
	for (const { body } of [made, rotated]) expect((await service.get("/v1/models", body.secret)).status).toBe(200);
});
