import { expect, test } from "bun:test";
import { withChat } from "../support/service.ts";
import { managementClient } from "./management-client.ts";

const { service } = await withChat({ dialect: "vllm" });
const script = await managementClient(service);
const { accountId, keyId, secret } = await service.customer();
const made = await script.send("POST", `/accounts/${accountId}/projects`, { name: "a" });
const project = `/projects/${made.body.id}`;

const resources: readonly [path: string, changes: readonly object[]][] = [
	[`/accounts/${accountId}`, [{ name: "a" }, { name: "b" }, { time_zone: "Europe/Berlin" }, { name: "d" }]],
	[`/keys/${keyId}`, [{ cap_usd: "50" }, { requests_per_minute: 9000 }, { name: "b" }, { models: ["test-model"] }]],
	[project, [{ cap_usd: "50" }, { requests_per_minute: 9000 }, { name: "b" }, { models: ["test-model"] }]],
];

test.each(resources)("only one of concurrent changes of %s with one ETag succeeds", async (path, changes) => {
	const read = await script.get(path);
	const etag = read.headers.get("etag") ?? "";
	expect(etag).toBe(`"${read.body.etag}"`);
	const answers = await Promise.all(changes.map((change) => script.send("PATCH", path, change, { "if-match": etag })));
	expect(answers.map(({ status }) => status).sort()).toEqual([200, 412, 412, 412]);
	const [lost] = answers.filter(({ status }) => status === 412);
	expect(lost?.body.error).toMatchObject({ code: "precondition_failed", type: "invalid_request_error" });
	const winner = answers.find(({ status }) => status === 200);
	const present = await script.get(path);
	expect(present.headers.get("etag")).toBe(winner?.headers.get("etag") ?? "");
	expect(present.headers.get("etag")).not.toBe(etag);
	const again = await script.send(
		"PATCH",
		path,
		{ name: "after" },
		{ "if-match": `"old", ${winner?.headers.get("etag")}` },
	);
	expect([again.status, again.body.name]).toEqual([200, "after"]);
});

test("a change by another caller invalidates an ETag, and use of the key does not", async () => {
	const read = (await script.get(`/keys/${keyId}`)).headers.get("etag") ?? "";
	const ask = { model: "test-model", messages: [{ role: "user", content: "hi" }], max_tokens: 5 };
	expect((await service.post("/v1/chat/completions", secret, ask)).status).toBe(200);
	await service.settled();
	const used = await script.get(`/keys/${keyId}`);
	expect(used.headers.get("etag")).toBe(read);
	expect(Number(used.body.spent_usd)).toBeGreaterThan(0);
	await service.db.sql`update api_key set name = 'elsewhere' where id = ${keyId}`;
	expect((await script.send("PATCH", `/keys/${keyId}`, { concurrency: 5 }, { "if-match": read })).status).toBe(412);
	expect((await script.get(`/keys/${keyId}`)).body.concurrency).toBeNull();
});

test("If-Match `*` matches every state, and a weak or invalid ETag is refused", async () => {
	const { etag } = (await script.get(`/keys/${keyId}`)).body;
	const by = (ifMatch: string) => script.send("PATCH", `/keys/${keyId}`, { name: "x" }, { "if-match": ifMatch });
	expect((await by(`W/"${etag}"`)).status).toBe(412);
	expect((await by(etag)).status).toBe(400);
	expect((await by("*")).status).toBe(200);
});

test("an absent field of an update keeps its value, and null removes it", async () => {
	const set = { cap_usd: "7.000000001", models: ["a", "b"], expires_at: "2030-01-31T12:00:00+01:00", concurrency: 3 };
	const made = await script.send("POST", "/keys", { account_id: accountId, name: "patched", ...set });
	const expected = { ...set, expires_at: "2030-01-31T11:00:00.000Z", requests_per_minute: null };
	expect(made.body).toMatchObject(expected);
	const path = `/keys/${made.body.id}`;
	const changed = await script.send("PATCH", path, { requests_per_minute: 60, models: null });
	expect(changed.body).toMatchObject({ ...expected, requests_per_minute: 60, models: null });
	const cleared = await script.send("PATCH", path, { cap_usd: null, expires_at: null, concurrency: null });
	expect(made.body).toMatchObject({ cap_period: "lifetime", cap_renews_at: null });
	const weekly = await script.send("PATCH", path, { cap_period: "week" });
	expect(weekly.body).toMatchObject({ cap_period: "week", cap_spent_usd: "0.00" });
	expect(new Date(weekly.body.cap_renews_at).getUTCDay()).toBe(1);
	expect(cleared.body).toMatchObject({ cap_usd: null, expires_at: null, concurrency: null, requests_per_minute: 60 });
	for (const [change, param] of [
		[{ cap_usd: "1.0000000001" }, "cap_usd"],
		[{ cap_usd: 5 }, "cap_usd"],
		[{ cap_period: "year" }, "cap_period"],
		[{ expires_at: "2030-02-31" }, "expires_at"],
		[{ name: "" }, "name"],
		[{ requests_per_minute: 0 }, "requests_per_minute"],
	] as const) {
		const { status, body } = await script.send("PATCH", path, change);
		expect([change, status, body.error.param]).toEqual([change, 400, param]);
	}
	expect((await script.send("PATCH", path, {})).status).toBe(400);
});
