/** Repeating a creation with its idempotency token returns the first result; the stored claim contains no secret. */
import { expect, test } from "bun:test";
import { claimCreatedId, deleteOldManagementClaims } from "../../src/keys/management-claim.ts";
import { createDigest } from "../../src/keys/secret.ts";
import { withChat } from "../support/service.ts";
import { managementClient } from "./management-client.ts";

const { service } = await withChat({ dialect: "vllm" });
const { sql } = service.db;
const script = await managementClient(service);
const { accountId } = await service.customer();
const ask = { model: "test-model", messages: [{ role: "user", content: "hi" }], max_tokens: 5 };

const eight = <T>(make: () => Promise<T>): Promise<T[]> => Promise.all(Array.from({ length: 8 }, make));
const one = <T>(values: readonly T[]): T => {
	expect(new Set(values).size).toBe(1);
	return values[0] as T;
};

test("concurrent account creations with one client_token create one account", async () => {
	const email = `${crypto.randomUUID()}@Example.com`;
	const header = { "idempotency-key": "race-of-accounts" };
	const answers = await eight(() => script.send("POST", "/accounts", { email, name: "Raced" }, header));
	expect(answers.map(({ status }) => status)).toEqual(Array(8).fill(200));
	const id = one(answers.map(({ body }) => body.id));
	const rows = await sql`select id, name from account where email = ${email.toLowerCase()}`;
	expect([...rows]).toEqual([{ id, name: "Raced" }]);
	expect((await script.send("POST", "/accounts", { email })).status).toBe(409);
	const another = { "idempotency-key": "another" };
	expect((await script.send("POST", "/accounts", { email, name: "Raced" }, another)).status).toBe(409);
	const audit = await sql`select 1 from audit_event where action = 'account.create' and subject = ${id}`;
	expect(audit.length).toBeGreaterThanOrEqual(1);
	await script.send("POST", "/accounts", { email, name: "Raced" }, header);
	expect(await sql`select 1 from audit_event where action = 'account.create' and subject = ${id}`).toHaveLength(
		audit.length,
	);
});

test("concurrent key creations with one client_token create one key", async () => {
	const body = { account_id: accountId, name: "raced", cap_usd: "10.5", client_token: "race-of-keys" };
	const answers = await eight(() => script.send("POST", "/keys", body));
	expect(answers.map(({ status }) => status)).toEqual(Array(8).fill(200));
	const id = one(answers.map((answer) => answer.body.id));
	const secret = one(answers.map((answer) => answer.body.secret));
	expect(await sql`select id from api_key where name = 'raced'`).toHaveLength(1);
	const [budget] = await sql`select limit_nano_usd from budget where id = ${id}`;
	expect(Number(budget?.limit_nano_usd)).toBe(10.5e9);
	expect((await service.post("/v1/chat/completions", secret, ask)).status).toBe(200);
	const { client_token: token, ...bare } = body;
	const again = await script.send("POST", "/keys", bare, { "idempotency-key": token });
	expect([again.body.id, again.body.secret]).toEqual([id, secret]);
	const both = await script.send("POST", "/keys", body, { "idempotency-key": "different" });
	expect([both.status, both.body.error.param]).toEqual([400, "client_token"]);
});

test("concurrent creations with one client_token create one project and one budget", async () => {
	const body = { name: "raced", cap_usd: "10.5", client_token: "race-of-projects" };
	const path = `/accounts/${accountId}/projects`;
	const answers = await eight(() => script.send("POST", path, body));
	expect(answers.map(({ status }) => status)).toEqual(Array(8).fill(200));
	const id = one(answers.map((answer) => answer.body.id));
	expect(await sql`select id from project where name = 'raced'`).toHaveLength(1);
	expect(await sql`select 1 from budget where id = ${id} and limit_nano_usd = 10500000000`).toHaveLength(1);
	const wrong = await script.send("POST", path, { name: "\n", client_token: "wrong-first" });
	const right = await script.send("POST", path, { name: "right", client_token: "wrong-first" });
	expect([wrong.status, right.status]).toEqual([400, 200]);
	await script.send("PATCH", `/projects/${id}`, { name: "renamed" });
	expect((await script.send("POST", path, body)).body).toMatchObject({ id, name: "renamed", cap_usd: "10.50" });
	const elsewhere = `/accounts/${(await service.customer()).accountId}/projects`;
	for (const [where, what] of [
		[elsewhere, body],
		[path, { ...body, cap_usd: "11" }],
	] as const)
		expect((await script.send("POST", where, what)).body.error.code).toBe("idempotency_mismatch");
	expect((await script.get(elsewhere)).body.data).toEqual([]);
	const audit = await sql`select detail from audit_event where action = 'project.create' and subject = ${id}`;
	expect(audit[0]?.detail).toEqual({ name: "raced", cap_usd: "10.5", operator: "cli" });
});

test("a client_token is bound to its request, its management key and a day", async () => {
	const body = { account_id: accountId, name: "first", client_token: "of-one-body" };
	const first = await script.send("POST", "/keys", body);
	const other = await script.send("POST", "/keys", { ...body, name: "second" });
	expect([other.status, other.body.error.code]).toEqual([422, "idempotency_mismatch"]);
	const theirs = await (await managementClient(service)).send("POST", "/keys", body);
	expect(theirs.status).toBe(200);
	expect(theirs.body.id).not.toBe(first.body.id);
	expect(theirs.body.secret).not.toBe(first.body.secret);
	await sql`update management_claim set at = at - interval '25 hours'`;
	const later = await script.send("POST", "/keys", body);
	expect(later.status).toBe(200);
	expect(later.body.id).not.toBe(first.body.id);
	expect(later.body.secret).not.toBe(first.body.secret);
});

test("a client_token stays valid if the database's clock is set forward", async () => {
	const deps = { statements: service.db.statements, digest: createDigest("p".repeat(32)) };
	const ask = (subject: string, aheadMs: number) =>
		claimCreatedId(deps, { by: "mk", token: "two clocks", request: "r", subject, nowMs: Date.now() + aheadMs });
	const dayMs = 25 * 3600_000;
	expect(await ask("one", 0)).toBe("one");
	expect(await ask("two", dayMs)).toBe("one");
	await sql`update management_claim set at = at - interval '25 hours'`;
	await deleteOldManagementClaims(deps.statements, Date.now() - dayMs);
	expect(await ask("two", -dayMs)).toBe("one");
	expect(await ask("two", 0)).toBe("two");
});

test("a repeated creation completes a creation that was interrupted after it began", async () => {
	const body = { account_id: accountId, name: "interrupted", client_token: "interrupted" };
	const { body: made } = await script.send("POST", "/keys", body);
	await sql`delete from budget where id = ${made.id}`;
	await sql`delete from api_key where id = ${made.id}`;
	await sql`delete from audit_event where subject = ${made.id}`;
	const again = await script.send("POST", "/keys", body);
	expect([again.status, again.body.id, again.body.secret]).toEqual([200, made.id, made.secret]);
	expect(await sql`select 1 from audit_event where subject = ${made.id}`).toHaveLength(1);
	expect((await service.post("/v1/chat/completions", made.secret, ask)).status).toBe(200);
});

test("a key rotation repeated with its client_token returns the same secret", async () => {
	const made = await script.send("POST", "/keys", { account_id: accountId, name: "rotated" });
	const rotate = (token: string) =>
		script.send("POST", `/keys/${made.body.id}/rotate`, { grace_seconds: 0 }, { "idempotency-key": token });
	const answers = await eight(() => rotate("a token with no form of its own".replaceAll(" ", "/")));
	expect(answers.map(({ status }) => status)).toEqual(Array(8).fill(200));
	const secret = one(answers.map(({ body }) => body.secret));
	one(answers.map(({ body }) => body.id));
	expect((await service.post("/v1/chat/completions", secret, ask)).status).toBe(200);
	expect((await service.post("/v1/chat/completions", made.body.secret, ask)).status).toBe(401);
	expect((await rotate("another-token")).status).toBe(409);
});

test("a credit adjustment requires a client_token, which books it once", async () => {
	const accountId = await service.account({ credit: "100" });
	const body = { account_id: accountId, amount_usd: "12.5", reason: "goodwill" };
	const bare = await script.send("POST", "/credit-adjustments", body);
	expect([bare.status, bare.body.error.param]).toEqual([400, "client_token"]);
	const answers = await eight(() => script.send("POST", "/credit-adjustments", body, { "idempotency-key": "once" }));
	expect(answers.map(({ status }) => status)).toEqual(Array(8).fill(200));
	one(answers.map((answer) => answer.body.id));
	expect(answers[0]?.body).toMatchObject({ amount_usd: "12.50", state: "booked", asked_by: "cli" });
	const after = (await script.get(`/accounts/${accountId}/credit`)).body;
	expect(after).toMatchObject({ promotional_usd: "0.00", balance_usd: "112.50", held_usd: "0.00", spent_usd: "0.00" });
	const other = { ...body, amount_usd: "13", client_token: "once" };
	expect((await script.send("POST", "/credit-adjustments", other)).status).toBe(409);
});

test("promotional credit has a last day and is shown separately", async () => {
	const accountId = await service.account({ credit: "100" });
	const day = new Date(Date.now() + 24 * 3_600_000).toISOString().slice(0, 10);
	const body = { account_id: accountId, amount_usd: "7.5", reason: "a campaign", client_token: "campaign" };
	const wrong = await script.send("POST", "/credit-adjustments", { ...body, last_day: day });
	expect([wrong.status, wrong.body.error.param]).toEqual([400, "last_day"]);
	const past = { ...body, kind: "promotion", last_day: "2026-01-31" };
	expect((await script.send("POST", "/credit-adjustments", past)).body.error.param).toBe("last_day");
	const made = await script.send("POST", "/credit-adjustments", { ...body, kind: "promotion", last_day: day });
	expect(made.body).toMatchObject({ kind: "promotion", last_day: day, amount_usd: "7.50", state: "booked" });
	const credit = (await script.get(`/accounts/${accountId}/credit`)).body;
	expect(credit).toMatchObject({ promotional_usd: "7.50", balance_usd: "107.50" });
});
