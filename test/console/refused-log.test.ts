import { expect, test } from "bun:test";
import { deleteRefusals, refusedPage } from "../../src/console/log/refused-log.ts";
import type { Statements } from "../../src/db/statements.ts";
import { withChat } from "../support/service.ts";
import { waitFor } from "../support/wait.ts";
import { operator, PERSON_ENV, signedUp, topUp } from "./person.ts";

const sent: { id: string; refused: boolean }[] = [];

async function make(settings: Record<string, unknown>) {
	const { body } = await customer.send("POST", "/api/console/keys", settings);
	return { id: body.key.id as string, secret: body.secret as string };
}

async function send(secret: string, more: Record<string, unknown> = {}): Promise<string> {
	const body = { model: "test-model", messages: [{ role: "user", content: "hi there" }], max_tokens: 5, ...more };
	const response = await service.post("/v1/chat/completions", secret, body);
	await response.text();
	const id = response.headers.get("x-request-id") ?? "";
	sent.push({ id, refused: response.status !== 200 });
	return id;
}

const { service } = await withChat({ dialect: "vllm", env: PERSON_ENV });
const customer = await signedUp(service);
await topUp(customer, await operator(service));
const rich = await make({ name: "rich" });
const capped = await make({ name: "capped", capUsd: "0.00002" });
for (let round = 0; round < 8; round++) {
	await send(rich.secret);
	await send(capped.secret, { max_tokens: 1_000 });
	if (round < 4) await send(rich.secret, { model: `none-${round}` });
}
await service.settled();
const refused = sent.filter((one) => one.refused).length;
await waitFor(async () => (await list("status=refused&limit=100")).length === refused, "the refusals");

// biome-ignore lint/suspicious/noExplicitAny: rows of both kinds.
async function list(query: string): Promise<any[]> {
	return (await customer.get(`/api/console/requests?${query}`)).body.items;
}

const newestFirst = (which: (one: { refused: boolean }) => boolean = () => true) =>
	sent
		.filter(which)
		.map(({ id }) => id)
		.reverse();

test("pages of the request log list answered and refused requests, each once", async () => {
	expect(sent.filter(({ refused }) => refused)).toHaveLength(12);
	for (const limit of [1, 3, 7, 200]) {
		const seen: string[] = [];
		let after: string | null = null;
		do {
			const page: { items: { id: string }[]; next: string | null } = (
				await customer.get(`/api/console/requests?limit=${limit}${after === null ? "" : `&after=${after}`}`)
			).body;
			seen.push(...page.items.map((item) => item.id));
			after = page.next;
		} while (after !== null);
		expect(seen).toEqual(newestFirst());
	}
});

test("filters of the request log select answered requests, refused requests, or both", async () => {
	const ids = async (query: string) => (await list(query)).map(({ id }) => id);
	expect(await ids("status=refused")).toEqual(newestFirst(({ refused }) => refused));
	expect(await ids("status=ok")).toEqual(newestFirst(({ refused }) => !refused));
	expect(await ids("status=failed")).toEqual([]);
	expect(await ids("model=none-2")).toHaveLength(1);
	expect(await ids("model=none-2&status=ok")).toEqual([]);
	expect(await ids(`key=${capped.id}`)).toHaveLength(8);
	expect(await ids(`key=${rich.id}`)).toHaveLength(12);
	expect(await ids(`key=${rich.id}&status=refused&model=none-1`)).toHaveLength(1);
	expect(await ids(`key=${capped.id}&model=none-1`)).toEqual([]);
	const [newest] = await list("status=refused&limit=1");
	expect(await ids(`status=refused&to=${newest.atMs}`)).not.toContain(newest.id);
	expect(await ids(`status=refused&from=${newest.atMs}`)).toContain(newest.id);
	expect(await ids(`status=refused&from=${newest.atMs - 0.5}&to=${newest.atMs + 0.5}`)).toContain(newest.id);
	expect((await customer.get("/api/console/usage?status=refused")).status).toBe(400);
});

test("the request log's entry of a 402 has its limit, amounts and affordable tokens", async () => {
	const body = { model: "test-model", messages: [{ role: "user", content: "hi there" }], max_tokens: 1_000 };
	const response = await service.post("/v1/chat/completions", capped.secret, body);
	const { error } = (await response.json()) as { error: Record<string, string | number> };
	const id = response.headers.get("x-request-id");
	await waitFor(async () => (await customer.get(`/api/console/requests/${id}`)).status === 200, "the refusal");
	const { body: detail } = await customer.get(`/api/console/requests/${id}`);
	const nano = (usd: unknown) => Math.round(Number(usd) * 1e9);
	expect(detail).toMatchObject({
		statusClass: "refused",
		id,
		model: "test-model",
		keyId: capped.id,
		keyName: "capped",
		endpoint: "chat",
		code: "key_cap_exceeded",
		status: 402,
		message: error.message,
		repeats: 0,
		shortage: {
			limit: "key",
			availableNanoUsd: 20_000,
			heldNanoUsd: 0,
			requiredNanoUsd: nano(error.required_usd),
			affordableMaxTokens: error.affordable_max_tokens ?? null,
		},
	});
	sent.push({ id: id ?? "", refused: true });
	const fits = await service.post("/v1/chat/completions", rich.secret, { ...body, model: "none" });
	await fits.text();
	sent.push({ id: fits.headers.get("x-request-id") ?? "", refused: true });
	const other = `/api/console/requests/${fits.headers.get("x-request-id")}`;
	await waitFor(async () => (await customer.get(other)).status === 200, "the other one");
	expect((await customer.get(other)).body).toMatchObject({ code: "model_not_found", param: "model", shortage: null });
});

test("the overview shows the newest requests of the request log", async () => {
	const { newest } = (await customer.get("/api/console/overview")).body;
	expect(newest.map(({ id }: { id: string }) => id)).toEqual(newestFirst().slice(0, 10));
});

test("the request log's CSV has answered and refused requests in fixed columns", async () => {
	const text = await (await customer.fetch("/api/console/requests.csv")).text();
	const [head = "", ...lines] = text.trimEnd().split("\r\n");
	const names = head.split(",");
	expect(names.slice(0, 17).join(",")).toBe(
		"time,request_id,model,key_id,key_name,endpoint,streamed,prompt_tokens,cached_tokens,completion_tokens,reasoning_tokens,cost_usd,duration_ms,first_token_ms,status,ending,basis",
	);
	const rows = lines.map((line) => {
		const cells = line.split(",");
		expect(cells).toHaveLength(names.length);
		return Object.fromEntries(names.map((name, at) => [name, cells[at]]));
	});
	expect(rows.map((row) => row.request_id)).toEqual(newestFirst());
	expect(rows.find((row) => row.error_code === "key_cap_exceeded")).toMatchObject({
		status: "402",
		ending: "refused",
		basis: "",
		prompt_tokens: "0",
		cost_usd: "0.00",
		duration_ms: "",
		available_usd: "0.00002",
		held_usd: "0.00",
		repeats: "0",
	});
	expect(rows.find((row) => row.ending === "finished")).toMatchObject({ status: "200", error_code: "", repeats: "" });
	const charged = rows.reduce((sum, row) => sum + Math.round(Number(row.cost_usd) * 1e9), 0);
	expect(charged).toBe((await customer.get("/api/console/credit")).body.balance.spentNanoUsd);
	const only = await (await customer.fetch("/api/console/requests.csv?status=refused")).text();
	expect(only.trimEnd().split("\r\n")).toHaveLength(1 + newestFirst(({ refused }) => refused).length);
});

test("refused requests are deleted from the log after 30 days, not earlier", async () => {
	const write = (days: number, rows: number) => service.db.sql`
		insert into refused_request (request_id, account_id, key_id, endpoint, code, status, message, refused_at)
		select gen_random_uuid(), 'acc_old', 'key_old', 'chat', 'overloaded', 429, 'x', now() - ${days}::int * interval '1 day'
		from generate_series(1, ${rows}::int)`;
	await write(31, 2_500);
	await write(29, 10);
	const before = (await service.db.sql`select count(*)::int as n from refused_request`)[0]?.n;
	const forgotten = await Promise.all([
		deleteRefusals(service.db.statements, 30),
		deleteRefusals(service.db.statements, 30),
	]);
	await deleteRefusals(service.db.statements, 30);
	expect(forgotten[0] + forgotten[1]).toBeLessThanOrEqual(2_500);
	const rows = await service.db.sql`
		select count(*)::int as n, count(*) filter (where account_id = 'acc_old')::int as kept from refused_request`;
	expect(rows[0]).toEqual({ n: before - 2_500, kept: 10 });
});

test("pages of refused requests read no rows of other accounts by the index for deletion", async () => {
	await service.db.sql`
		insert into refused_request (request_id, account_id, key_id, endpoint, code, status, message, refused_at)
		select gen_random_uuid(), 'acc_' || n % 8, 'key_' || n % 8, 'chat', 'overloaded', 429, 'x', now() - n * interval '1 s'
		from generate_series(1, 20000) n`;
	await service.db.sql`analyze refused_request`;
	const plans: string[] = [];
	const explain = async (strings: TemplateStringsArray) => {
		const text = strings.reduce((before, next, at) => `${before}$${at}${next}`);
		plans.push(JSON.stringify([...(await service.db.sql.unsafe(`explain (generic_plan) ${text}`))]));
		return [];
	};
	const statements = Object.assign(explain, { end: async () => {} }) as Statements;
	const filter = { fromMs: null, toMs: null, model: null, keyId: null, projectId: null };
	await refusedPage(statements, "acc_1", filter, { asked: 50, after: null });
	await deleteRefusals(statements, 30);
	const [page, deletion] = plans;
	expect(page).toContain("Index Scan Backward using refused_request_account");
	expect(page).not.toContain("refused_request_refused");
	expect(deletion).toContain("refused_request_refused");
});
