import { expect, test } from "bun:test";
import { revokeKey } from "../../../src/keys/key-admin.ts";
import { untilEnd } from "../../support/at-end.ts";
import { ask, errorOf, expectUncharged } from "../../support/chat.ts";
import { chatModel, withService } from "../../support/service.ts";
import { startUpstream } from "../../support/upstream-server.ts";
import { waitFor } from "../../support/wait.ts";

const upstream = untilEnd(startUpstream());
const service = await withService({ models: chatModel({ url: upstream.url }) });
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

test("401 missing_api_key: no header, or one without a key", async () => {
	await expect401(await chat({}), "missing_api_key");
	await expect401(await chat({ authorization: "Bearer" }), "missing_api_key");
	await expect401(await service.get("/v1/models"), "missing_api_key");
});

test("401 invalid_api_key: malformed, unknown, of another scheme, or two different ones", async () => {
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

test("401 api_key_revoked: on every endpoint, before the body is looked at", async () => {
	const { id, secret } = await service.key(accountId);
	await service.get("/v1/models", secret);
	await revokeKey(service.db.statements, { id });
	await waitFor(async () => (await service.get("/v1/models", secret)).status === 401, "the revocation to be applied");
	await expect401(await service.get("/v1/models", secret), "api_key_revoked");
	await expect401(await service.get("/v1/models/test-model", secret), "api_key_revoked");
	await expect401(await service.post("/v1/chat/completions", secret, ask()), "api_key_revoked");
	await expect401(await service.post("/v1/chat/completions", secret, "{"), "api_key_revoked");
});

test("401 api_key_expired: from its moment on", async () => {
	const expired = await service.key(accountId, { expiresAtMs: Date.now() - 1 });
	await expect401(await service.post("/v1/chat/completions", expired.secret, ask()), "api_key_expired");
	await expect401(await service.get("/v1/models", expired.secret), "api_key_expired");
});

test("none of these reached a model server or was charged", async () => {
	await expectUncharged(service, accountId);
	expect(upstream.requests).toHaveLength(0);
});
