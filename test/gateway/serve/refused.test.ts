import { expect, test } from "bun:test";
import { uuidFromId } from "../../../src/base/id.ts";
import { revokeKey } from "../../../src/keys/key-admin.ts";
import { nanoUsd, parseUsd } from "../../../src/money/nano-usd.ts";
import { ask } from "../../support/chat.ts";
import { chatModel, withService } from "../../support/service.ts";
import { reply, withUpstream } from "../../support/upstream-server.ts";
import { waitFor } from "../../support/wait.ts";

/** Requests that are refused before admission leave a row in the refusal log of the key's owner. */

/** Each test has its own model, so that parallel tests do not receive each other's answers. */

const upstream = withUpstream("vllm");
const failing = withUpstream("vllm");
const service = await withService({
	models: [
		chatModel({ url: upstream.url, dialect: "vllm" }),
		chatModel({ id: "other-model", url: upstream.url, dialect: "vllm" }),
		chatModel({ id: "failing-model", url: failing.url, dialect: "vllm" }),
	].join("\n"),
});

const CHAT = "/v1/chat/completions";

interface Sent {
	readonly status: number;
	readonly uuid: string;
	readonly error: Record<string, string | number | null>;
}

async function send(secret: string, body: unknown, path = CHAT, init: RequestInit = {}): Promise<Sent> {
	const response = await service.post(path, secret, body, init);
	const { error } = (await response.json()) as { error: Sent["error"] };
	return { status: response.status, uuid: uuidFromId(response.headers.get("x-request-id") ?? "") as string, error };
}

const refused = async (accountId: string) => [
	...(await service.db.sql`
		select * from refused_request where account_id = ${accountId} order by refused_at, request_id`),
];

async function stored(accountId: string, count: number) {
	await waitFor(async () => (await refused(accountId)).length >= count, `${count} refusals of ${accountId}`);
	const rows = await refused(accountId);
	expect(rows).toHaveLength(count);
	return rows;
}

const amounts = (error: Sent["error"]) => ({
	available_nano_usd: String(parseUsd(String(error.available_usd))),
	held_nano_usd: String(parseUsd(String(error.held_usd))),
	required_nano_usd: String(parseUsd(String(error.required_usd))),
	affordable_tokens: error.affordable_max_tokens ?? null,
});

test.concurrent("a 402 for a key's cap has another code than a 402 for the account's credit", async () => {
	const { accountId, secret } = await service.customer({ settings: { capNanoUsd: nanoUsd(1_000) } });
	const chat = await send(secret, ask());
	const completion = await send(secret, { model: "test-model", prompt: "one two" }, "/v1/completions");
	const rows = await stored(accountId, 2);
	expect(rows.map((row) => [row.request_id, row.endpoint, row.code, row.status])).toEqual([
		[chat.uuid, "chat", "key_cap_exceeded", 402],
		[completion.uuid, "completions", "key_cap_exceeded", 402],
	]);
	expect(rows[0]).toMatchObject(amounts(chat.error));
	expect(rows[0]?.available_nano_usd).toBe("1000");
});

test.concurrent("refused requests are stored with account, key and model, without the prompt", async () => {
	const poor = await service.account({ credit: null });
	const { secret: poorSecret } = await service.key(poor);
	await send(poorSecret, ask());
	const { accountId, secret } = await service.customer({ settings: { models: ["test-model"] } });
	await send(secret, ask("canary-prompt", { model: "other-model" }));
	await send(secret, ask("canary-prompt", { model: `none\0${"x".repeat(500)}` }));
	await send(secret, ask("canary-prompt", { temperature: "canary-prompt" }));
	await send(secret, `{"messages": "canary-prompt`);
	const limited = await service.key(accountId, { requestsPerMinute: 1 });
	await (await service.chat(limited.secret, ask("canary-prompt"))).text();
	// A rate-limited request is refused before its body is read, so its row has no model.
	await send(limited.secret, ask("canary-prompt"));
	expect((await stored(poor, 1))[0]).toMatchObject({ code: "top_up_required", status: 402, required_nano_usd: null });
	const rows = await stored(accountId, 5);
	expect(rows.map((row) => [row.code, row.status, row.model?.slice(0, 11) ?? null, row.param])).toEqual([
		["model_not_allowed", 403, "other-model", "model"],
		["model_not_found", 404, "none\u{fffd}xxxxxx", "model"],
		["invalid_request", 400, "test-model", "temperature"],
		["invalid_request", 400, null, null],
		["rate_limit_exceeded", 429, null, null],
	]);
	expect(JSON.stringify(rows)).not.toContain("canary-prompt");
	expect(rows[1]?.model).toHaveLength(128);
});

test.concurrent("a request that fails after admission is stored as usage, not as refused", async () => {
	const { accountId, secret } = await service.customer();
	failing.next(reply().errorStatus(400, { error: { message: "no" } }));
	const failed = await send(secret, ask("hi", { model: "failing-model" }));
	expect(failed.status).toBe(400);
	const { uuid } = await send(secret, ask("hi", { model: "none" }));
	expect((await stored(accountId, 1))[0]?.request_id).toBe(uuid);
	await service.settled();
	expect((await service.usage(accountId)).map((row) => row.request_id)).toEqual([failed.uuid]);
});

test("the log of a key's owner has refusals of the revoked key, not of unknown keys", async () => {
	const { accountId, keyId, secret } = await service.customer();
	expect((await service.get("/v1/models", secret)).status).toBe(200);
	await revokeKey(service.db.statements, { id: keyId, accountId });
	await waitFor(async () => (await service.get("/v1/models", secret)).status === 401, "the revocation to arrive");
	const strangers = async () =>
		(await service.db.sql`select count(*)::int as n from refused_request where account_id <> ${accountId}`)[0]?.n;
	const before = await strangers();
	const { error } = await send(secret, ask());
	expect(error.code).toBe("api_key_revoked");
	const nobody = await send(`${secret.slice(0, -6)}AAAAAA`, ask());
	expect(nobody.status).toBe(401);
	const { accountId: next, secret: nextSecret } = await service.customer();
	await send(nextSecret, ask("hi", { model: "none" }));
	await stored(next, 1);
	expect(await strangers()).toBe(before + 1);
	expect((await stored(accountId, 1))[0]).toMatchObject({ code: "api_key_revoked", status: 401, model: null });
});
