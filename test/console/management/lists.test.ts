/** Lists are read whole, page by page, once each, whatever is made meanwhile; usage is that of the sums. */

import { expect, test } from "bun:test";
import { untilEnd } from "../../support/at-end.ts";
import { chatModel, withService } from "../../support/service.ts";
import { rebuildAll } from "../../support/sums.ts";
import { startUpstream } from "../../support/upstream-server.ts";
import { waitFor } from "../../support/wait.ts";
import { writeUsage } from "../usage-rows.ts";
import { managementClient } from "./management-client.ts";

const upstream = untilEnd(startUpstream({ dialect: "vllm" }));
const service = await withService({ models: chatModel({ url: upstream.url, dialect: "vllm" }) });
const script = await managementClient(service);

// biome-ignore lint/suspicious/noExplicitAny: rows of any list.
async function whole(path: string, between: () => Promise<unknown> = async () => {}): Promise<any[]> {
	// biome-ignore lint/suspicious/noExplicitAny: rows of any list.
	const rows: any[] = [];
	let after = "";
	for (;;) {
		const page = (await script.get(`${path}${path.includes("?") ? "&" : "?"}limit=2${after}`)).body;
		rows.push(...page.data);
		expect(page.has_more).toBe(page.next !== null);
		if (page.next === null) return rows;
		expect(page.data).toHaveLength(2);
		after = `&after=${encodeURIComponent(page.next)}`;
		await between();
	}
}

test("accounts and keys that were there are each listed once, newest first, while others are made", async () => {
	const accounts: string[] = [];
	for (let n = 0; n < 5; n++) accounts.unshift(await service.account({ credit: null }));
	const [accountId = ""] = accounts;
	const keys: string[] = [];
	for (let n = 0; n < 5; n++) keys.unshift((await service.key(accountId)).id);
	const ids = (rows: { id: string }[]) => rows.map(({ id }) => id);
	expect(ids(await whole("/accounts", () => service.account({ credit: null }))).slice(0, 5)).toEqual(accounts);
	expect(ids(await whole(`/keys?account_id=${accountId}`, () => service.key(accountId)))).toEqual(keys);
	const { email } = (await script.get(`/accounts/${accountId}`)).body;
	expect(ids((await script.get(`/accounts?email=${encodeURIComponent(email.toUpperCase())}`)).body.data)).toEqual([
		accountId,
	]);
	expect((await script.get("/accounts?email=nobody%40example.com")).body.data).toEqual([]);
});

test("a key that only reads is made, says so, reads and does nothing else; it has no cap, and none is given to it", async () => {
	const { accountId, secret: usual } = await service.customer();
	const made = (await script.send("POST", "/keys", { account_id: accountId, name: "dashboard", reads_only: true }))
		.body;
	expect(made).toMatchObject({ object: "key", reads_only: true, cap_usd: "0.00" });
	expect((await script.get(`/keys/${made.id}`)).body.reads_only).toBe(true);
	expect((await whole(`/keys?account_id=${accountId}`)).map((key) => key.reads_only)).toEqual([true, false]);
	expect((await service.get("/v1/usage", made.secret)).status).toBe(200);
	const ask = { model: "test-model", messages: [{ role: "user", content: "hi" }], max_tokens: 5 };
	const refused = await service.post("/v1/chat/completions", made.secret, ask);
	expect([refused.status, (await refused.json()).error.code]).toEqual([403, "read_only_key"]);
	expect((await service.post("/v1/chat/completions", usual, ask)).status).toBe(200);
	const capped = { account_id: accountId, name: "capped", reads_only: true, cap_usd: "1" };
	expect((await script.send("POST", "/keys", capped)).body.error).toMatchObject({ param: "cap_usd" });
	expect((await script.send("PATCH", `/keys/${made.id}`, { cap_usd: "1" })).status).toBe(409);
});

test("adjustments are listed by account and state", async () => {
	const accountId = await service.account();
	const made: string[] = [];
	for (const token of ["a", "b", "c"]) {
		const body = { account_id: accountId, amount_usd: "1", reason: "a test", client_token: `list-${token}` };
		made.unshift((await script.send("POST", "/credit-adjustments", body)).body.id);
	}
	const listed = await whole(`/credit-adjustments?account_id=${accountId}&state=booked`);
	expect(listed.map(({ id }) => id)).toEqual(made);
	expect((await script.get(`/credit-adjustments?account_id=${accountId}&state=pending`)).body.data).toEqual([]);
	expect((await script.get("/credit-adjustments?state=lost")).body.error.param).toBe("state");
});

test("usage by account, day, key and model adds up to what was settled, read in pages", async () => {
	const [one, other] = [await service.customer(), await service.customer()];
	for (const { accountId, keyId } of [one, other])
		await writeUsage(service.db, { accountId, keyIds: [keyId, `${keyId}_b`], rows: 60, days: 3, models: 2 });
	// What the tests before this one asked for is in the sums too.
	await service.settled();
	await rebuildAll(service.db.statements);
	const day = (ago: number) => new Date(Date.now() - ago * 86_400_000).toISOString().slice(0, 10);
	const range = `from=${day(6)}&to=${day(0)}`;
	for (const accountId of [one.accountId, null]) {
		const rows = await whole(`/usage?${range}${accountId === null ? "" : `&account_id=${accountId}`}`);
		const expected = await service.db.sql`
			select account_id, to_char(admitted_at at time zone 'UTC', 'YYYY-MM-DD') as day, key_id, model, count(*) as requests,
				sum(prompt_tokens) as prompt, sum(charged_nano_usd) as charged
			from usage_event where account_id = ${accountId} or ${accountId === null} group by 1, 2, 3, 4`;
		const name = (row: Record<string, unknown>) => `${row.account_id} ${row.day} ${row.key_id} ${row.model}`;
		const places = rows.map(name);
		expect(places).toEqual(places.toSorted());
		expect(places).toEqual(expected.map(name).toSorted());
		for (const row of expected) {
			const found = rows.find((item) => name(item) === name(row));
			expect([found?.requests, found?.prompt_tokens]).toEqual([Number(row.requests), Number(row.prompt)]);
			expect(Math.round(Number(found?.cost_usd) * 1e9)).toBe(Number(row.charged));
		}
	}
	const byKey = await whole(`/usage?${range}&key_id=${one.keyId}&model=model-0`);
	expect(new Set(byKey.map(({ key_id, model }) => `${key_id} ${model}`))).toEqual(new Set([`${one.keyId} model-0`]));
	for (const [query, param] of [
		[`to=${day(0)}`, "from"],
		[`from=${day(0)}&to=${day(1)}`, "to"],
		[`from=${day(40)}&to=${day(0)}`, "from"],
		[`from=${day(500)}&to=${day(0)}&account_id=${one.accountId}`, "from"],
		[`from=2027-13-01&to=${day(0)}`, "from"],
		[`${range}&after=nonsense`, "after"],
		[`${range}&limit=0`, "limit"],
		[`${range}&limit=201`, "limit"],
	] as const)
		expect([query, (await script.get(`/usage?${query}`)).body.error?.param]).toEqual([query, param]);
});

test("the catalogue that is served has a digest, which changes with its rates", async () => {
	const digest = async () => (await script.get("/catalog")).body;
	const before = await digest();
	expect(before).toMatchObject({ in_agreement: true, models: 1 });
	expect(before.gateways).toHaveLength(1);
	await service.serve(chatModel({ url: upstream.url, dialect: "vllm" }).replace('output: "2"', 'output: "3"'));
	await waitFor(async () => (await digest()).digest !== before.digest, "the gateway to report its new rates");
	await service.serve(chatModel({ url: upstream.url, dialect: "vllm" }));
});
