import { describe, expect, test } from "bun:test";
import { createAccount, suspendAccount } from "../../../src/keys/account-admin.ts";
import { revokeKey } from "../../../src/keys/key-admin.ts";
import { nanoUsd, parseUsd } from "../../../src/money/nano-usd.ts";
import { ask, errorOf, expectUncharged } from "../../support/chat.ts";
import { chatModel, withService } from "../../support/service.ts";
import { withUpstream } from "../../support/upstream-server.ts";
import { waitFor } from "../../support/wait.ts";

const upstream = withUpstream();
const service = await withService({
	models: [
		chatModel({ url: upstream.url, extra: "    aliases: [nickname]" }),
		chatModel({ id: "other-model", url: upstream.url }),
	].join("\n"),
});
const accountId = await service.account();

const chat = (headers: Record<string, string>) =>
	fetch(`${service.url}/v1/chat/completions`, {
		method: "POST",
		headers: { "content-type": "application/json", ...headers },
		body: JSON.stringify(ask()),
	});

async function expect401(response: Response, code: string): Promise<void> {
	const { status, error, headers } = await errorOf(response);
	expect(status).toBe(401);
	expect(error).toMatchObject({ code, type: "authentication_error", param: null });
	expect(headers.get("www-authenticate")).toBe("Bearer");
}

test("a request without a key gets 401 missing_api_key", async () => {
	await expect401(await chat({}), "missing_api_key");
	await expect401(await chat({ authorization: "Bearer" }), "missing_api_key");
	await expect401(await service.get("/v1/models"), "missing_api_key");
});

test("a malformed, unknown or repeated key gets 401 invalid_api_key", async () => {
	const { secret } = await service.key(accountId);
	const other = await service.key(accountId);
	const broken = `${secret.slice(0, -1)}${secret.endsWith("a") ? "b" : "a"}`;
	for (const authorization of [
		`Bearer ${broken}`,
		"Bearer x",
		`Basic ${secret}`,
		`Bearer sk-${"a".repeat(48)}`,
		`Bearer ${secret} x`,
	])
		await expect401(await chat({ authorization }), "invalid_api_key");
	await expect401(await chat({ authorization: `Bearer ${secret}`, "x-api-key": other.secret }), "invalid_api_key");
	const elsewhere = await fetch(`${service.url}/v1/chat/completions?api_key=${secret}`, { method: "POST", body: "{}" });
	await expect401(elsewhere, "missing_api_key");
});

test("a revoked key gets 401 api_key_revoked before the body is read", async () => {
	const { id, secret } = await service.key(accountId);
	await service.get("/v1/models", secret);
	await revokeKey(service.db.statements, { id });
	await waitFor(async () => (await service.get("/v1/models", secret)).status === 401, "the revocation to be applied");
	await expect401(await service.get("/v1/models", secret), "api_key_revoked");
	await expect401(await service.get("/v1/models/test-model", secret), "api_key_revoked");
	await expect401(await service.chat(secret, ask()), "api_key_revoked");
	await expect401(await service.chat(secret, "{"), "api_key_revoked");
});

test("an expired key gets 401 api_key_expired from the time of expiry on", async () => {
	const expired = await service.key(accountId, { expiresAtMs: Date.now() - 60_000 });
	await expect401(await service.chat(expired.secret, ask()), "api_key_expired");
	await expect401(await service.get("/v1/models", expired.secret), "api_key_expired");
});

test("a request that gets 401 is not charged and not sent to a model server", async () => {
	await expectUncharged(service, accountId);
	expect(upstream.requests).toHaveLength(0);
});

test("a model that the key may not use gets 403 model_not_allowed, also by an alias", async () => {
	const { accountId, secret } = await service.customer({ settings: { models: ["other-model"] } });
	for (const model of ["test-model", "nickname"]) {
		const { status, error } = await errorOf(await service.chat(secret, ask("hi", { model })));
		expect(status).toBe(403);
		expect(error).toMatchObject({ code: "model_not_allowed", type: "permission_error", param: "model" });
	}
	await expectUncharged(service, accountId);
	const allowed = await service.chat(secret, ask("hi", { model: "other-model" }));
	expect(allowed.status).toBe(200);
	await allowed.text();
});

test("a suspended account gets 403 account_suspended at once", async () => {
	const { accountId, secret } = await service.customer();
	await service.get("/v1/models", secret);
	await suspendAccount(service.db.statements, accountId);
	const post = () => service.chat(secret, ask());
	await waitFor(async () => (await service.get("/v1/models", secret)).status === 403, "the suspension to be applied");
	const { status, error } = await errorOf(await post());
	expect(status).toBe(403);
	expect(error).toMatchObject({ code: "account_suspended", type: "permission_error", param: null });
	await expectUncharged(service, accountId);
});

test("a key gets 403 sign_in_required before its owner's first sign-in", async () => {
	const { id } = await createAccount(service.db.statements, { email: "new@example.com", vouched: false });
	const { secret } = await service.key(id);
	const { status, error } = await errorOf(await service.chat(secret, ask()));
	expect(status).toBe(403);
	expect(error).toMatchObject({ code: "sign_in_required", type: "permission_error", param: null });
});

const AMOUNTS = ["available_usd", "held_usd", "required_usd"];
const post = (secret: string, body: unknown) => service.chat(secret, body);

test("an account that never paid gets 402 top_up_required, but can list models", async () => {
	const accountId = await service.account({ credit: null });
	const { secret } = await service.key(accountId);
	const { status, error, headers } = await errorOf(await post(secret, ask()));
	expect(status).toBe(402);
	expect(error).toMatchObject({ code: "top_up_required", type: "insufficient_quota", param: null });
	expect(headers.get("x-should-retry")).toBe("false");
	expect((await service.get("/v1/models", secret)).status).toBe(200);
	await expectUncharged(service, accountId);
});

describe("402 insufficient_quota", () => {
	test("names the amounts and the largest `max_tokens` that the credit covers", async () => {
		const { accountId, secret } = await service.customer({ exactCredit: 1_000_000 });
		for (const stream of [false, true]) {
			const { status, error, headers } = await errorOf(await post(secret, ask("one two three", { stream })), [
				...AMOUNTS,
				"affordable_max_tokens",
			]);
			expect(status).toBe(402);
			expect(error).toMatchObject({
				code: "insufficient_quota",
				type: "insufficient_quota",
				available_usd: "0.001",
				held_usd: "0.00",
			});
			expect(headers.get("x-should-retry")).toBe("false");
			const affordable = error.affordable_max_tokens as number;
			expect(error.message).toContain(`up to USD ${error.required_usd}, available is USD ${error.available_usd}.`);
			expect(error.message).toContain(`\`max_tokens\` of ${affordable} would fit`);
			const above = await post(secret, ask("one two three", { stream, max_tokens: affordable + 1 }));
			expect(above.status).toBe(402);
			await above.text();
		}
		await expectUncharged(service, accountId);
		const { error } = await errorOf(await post(secret, ask()), [...AMOUNTS, "affordable_max_tokens"]);
		const fits = await post(secret, ask("one two three", { max_tokens: error.affordable_max_tokens }));
		expect(fits.status).toBe(200);
		await fits.text();
	});

	test("names no affordable output if the prompt alone costs more than the credit", async () => {
		const { secret } = await service.customer({ exactCredit: 5_000 });
		const { error } = await errorOf(await post(secret, ask()), AMOUNTS);
		expect(error).toMatchObject({ code: "insufficient_quota", available_usd: "0.000005" });
		expect(parseUsd(error.required_usd as string) as number).toBeGreaterThan(5_000);
	});

	test("divides the affordable output by the number of choices", async () => {
		const { secret } = await service.customer({ exactCredit: 1_000_000 });
		const one = await errorOf(await post(secret, ask("hi", { n: 1 })), [...AMOUNTS, "affordable_max_tokens"]);
		const four = await errorOf(await post(secret, ask("hi", { n: 4 })), [...AMOUNTS, "affordable_max_tokens"]);
		expect(four.error.affordable_max_tokens).toBe(Math.floor((one.error.affordable_max_tokens as number) / 4));
	});
});

test("a key at its cap gets 402 key_cap_exceeded although its account has credit", async () => {
	const before = upstream.requests.length;
	const { accountId, secret } = await service.customer({ settings: { capNanoUsd: nanoUsd(1_000_000) } });
	const { status, error, headers } = await errorOf(await post(secret, ask()), [...AMOUNTS, "affordable_max_tokens"]);
	expect(status).toBe(402);
	expect(error).toMatchObject({ code: "key_cap_exceeded", type: "insufficient_quota", available_usd: "0.001" });
	expect(headers.get("x-should-retry")).toBe("false");
	await expectUncharged(service, accountId);
	expect(upstream.requests.length).toBe(before);
});
