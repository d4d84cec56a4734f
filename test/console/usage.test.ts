import { expect, test } from "bun:test";
import { csvLine } from "../../src/base/csv.ts";
import { foldUsage } from "../../src/console/usage/usage-fold.ts";
import { usageSeries } from "../../src/console/usage/usage-query.ts";
import { formatUsd, type NanoUsd, parseUsd } from "../../src/money/nano-usd.ts";
import type { TestDatabase } from "../support/database.ts";
import { LONG } from "../support/long-form.ts";
import { openTransaction } from "../support/open-transaction.ts";
import { withChat } from "../support/service.ts";
import { foldAll, rebuildAllSums } from "../support/sums.ts";
import { waitFor } from "../support/wait.ts";
import { operator, PERSON_ENV, signedUp, topUp } from "./person.ts";

const { service } = await withChat({ dialect: "vllm", env: PERSON_ENV, jobs: { pace: 10 } });
const customer = await signedUp(service);
await topUp(customer, await operator(service));
const { key, secret } = (await customer.send("POST", "/api/console/keys", { name: "=cmd|' /C calc'!A0" })).body;

async function sums(db: Pick<TestDatabase, "sql">, table: "usage_hour" | "usage_event") {
	const requests = table === "usage_hour" ? db.sql`sum(requests)` : db.sql`count(*)`;
	const rows = await db.sql`
		select account_id, model, ${requests}::text as requests, sum(prompt_tokens)::text as prompt, sum(completion_tokens)::text as completion,
			sum(charged_nano_usd)::text as charged from ${db.sql(table)} group by 1, 2 order by 1, 2`;
	return [...rows];
}

const AT_ONCE = 30;
const ROUNDS = LONG ? 10 : 4;

test("usage sums equal the requests while requests and summing jobs run concurrently", async () => {
	const body = { model: "test-model", messages: [{ role: "user", content: "hi there" }], max_tokens: 5 };
	let done = false;
	const folding = Array.from({ length: 3 }, async () => {
		while (!done) {
			await foldUsage(service.db.statements);
			await Bun.sleep(5);
		}
	});
	for (let round = 0; round < ROUNDS; round++) {
		const answers = Array.from({ length: AT_ONCE }, () => service.post("/v1/chat/completions", secret, body));
		await Promise.all((await Promise.all(answers)).map((answer) => answer.text()));
	}
	await service.settled();
	done = true;
	await Promise.all(folding);
	await foldAll(service.db.statements);
	expect((await sums(service.db, "usage_hour"))[0]?.requests).toBe(String(ROUNDS * AT_ONCE));
	expect(await sums(service.db, "usage_hour")).toEqual(await sums(service.db, "usage_event"));
	const series = (await customer.get("/api/console/usage?group=key&bucket=hour")).body;
	expect(series.total.requests).toBe(ROUNDS * AT_ONCE);
	expect(series.groups).toHaveLength(1);
	expect(series.total.costNanoUsd).toBe((await customer.get("/api/console/credit")).body.balance.spentNanoUsd);
	expect((await customer.get(`/api/console/keys/${key.id}`)).body.lastUsedAtMs).toBeGreaterThan(Date.now() - 60_000);
}, 120_000);

test("a second console skips a summing job that another console is running", async () => {
	const release = await openTransaction(service.db.sql, (tx) => tx`select 1 from usage_cursor for update`);
	expect(await foldUsage(service.db.statements)).toBeNull();
	await release();
});

test("the CSV of usage has every request and no formula", async () => {
	const response = await customer.fetch("/api/console/requests.csv");
	expect(response.headers.get("content-type")).toContain("text/csv");
	expect(response.headers.get("content-disposition")).toContain('filename="requests.csv"');
	const lines = (await response.text()).trimEnd().split("\r\n");
	expect(lines).toHaveLength(ROUNDS * AT_ONCE + 1);
	expect(lines[1]).toContain("'=cmd");
	expect(csvLine(['a"b', "-1", "-x", "@y", 3, null])).toBe(`"a""b",-1,'-x,'@y,3,\r\n`);
	expect(await (await customer.fetch("/api/console/usage.csv?group=model")).text()).toContain("test-model");
});

test("an invalid filter of the usage gets 400 with the filter's name", async () => {
	for (const query of [
		"from=x",
		"bucket=year",
		"status=bad",
		"from=10&to=5",
		"from=0&bucket=day",
		"from=0&bucket=hour",
	])
		expect((await customer.get(`/api/console/usage?${query}`)).status).toBe(400);
	for (const query of ["after=zzz", "after=1.x", `after=1.${"-".repeat(36)}`, "limit=0", "limit=201", "limit=1.5"])
		expect((await customer.get(`/api/console/requests?${query}`)).status).toBe(400);
});

test("the longest time range of usage is accepted, a millisecond more is refused", async () => {
	const day = 86_400_000;
	const answers: unknown[] = [];
	for (const [bucket, days] of [
		["hour", 31],
		["day", 400],
	] as const)
		for (const to of [Date.UTC(2026, 9, 31), Date.UTC(2026, 9, 31) + 1, Date.UTC(2026, 9, 31) - 1, Date.now()])
			for (const more of [-1, 0, 1]) {
				const from = to - days * day - more;
				const { status } = await customer.get(`/api/console/usage?bucket=${bucket}&from=${from}&to=${to}`);
				if (status !== (more > 0 ? 400 : 200)) answers.push([bucket, days, to, more, status]);
			}
	expect(answers).toEqual([]);
});

test("the live overview shows a new request and frees the streams of closed pages", async () => {
	// The overview sorts by the clock, which another test may have set back.
	const watcher = await signedUp(service);
	await topUp(watcher, await operator(service));
	const { secret } = (await watcher.send("POST", "/api/console/keys", { name: "watched" })).body;
	const leave = new AbortController();
	const response = await watcher.fetch("/api/console/live", { signal: leave.signal });
	expect(response.headers.get("content-type")).toBe("text/event-stream");
	let told = "";
	const reading = (async () => {
		const decoder = new TextDecoder();
		for await (const bytes of response.body as ReadableStream<Uint8Array>)
			told += decoder.decode(bytes, { stream: true });
	})().catch((error) => error);
	await waitFor(() => told.includes("event: overview"), "the overview as it is");
	const body = { model: "test-model", messages: [{ role: "user", content: "hi there" }], max_tokens: 5 };
	const used = await service.post("/v1/chat/completions", secret, body);
	const id = used.headers.get("x-request-id") ?? "";
	expect({ id, text: await used.text() }).toEqual({
		id: expect.stringMatching(/^req_/),
		text: expect.stringContaining("hi there"),
	});
	await service.settled();
	expect((await watcher.get("/api/console/overview")).body.newest[0].id).toBe(id);
	await waitFor(() => told.includes(id), "the overview with the request");
	leave.abort();
	expect((await reading)?.name).toBe("AbortError");
	expect(service.logged.filter((line) => line.level === "error")).toEqual([]);
}, 60_000);

test("a read-only key reads the same usage sums as the console", async () => {
	const body = { model: "test-model", messages: [{ role: "user", content: "hi there" }], max_tokens: 5 };
	const series = (await customer.get("/api/console/usage?group=key&bucket=hour")).body;
	const reader = (await customer.send("POST", "/api/console/keys", { name: "dashboard", readsOnly: true })).body;
	expect([reader.key.readsOnly, reader.key.capNanoUsd]).toEqual([true, 0]);
	const sum = await (await service.get("/v1/usage?group_by=key", reader.secret)).json();
	expect(sum.data.map(({ key_id, requests }: Record<string, unknown>) => [key_id, requests])).toEqual([
		[key.id, series.total.requests],
	]);
	expect(parseUsd(sum.data[0].cost_usd)).toBe(series.total.costNanoUsd);
	expect(sum.data[0].total_tokens).toBe(series.total.promptTokens + series.total.completionTokens);
	expect(Date.parse(sum.as_of)).toBeGreaterThan(Date.now() - 120_000);
	const chat = await customer.send("POST", `/api/console/playground/chat?key=${reader.key.id}`, body);
	expect([chat.status, chat.body.error.code]).toEqual([403, "read_only_key"]);
	expect((await customer.send("PATCH", `/api/console/keys/${reader.key.id}`, { capUsd: "5" })).status).toBe(409);
	const next = (await customer.send("POST", `/api/console/keys/${reader.key.id}/rotate`, { graceMs: 0 })).body;
	expect(next.key.readsOnly).toBe(true);
	expect((await service.post("/v1/chat/completions", next.secret, body)).status).toBe(403);
	expect((await service.get("/v1/usage", reader.secret)).status).toBe(401);
	expect((await customer.send("POST", "/api/console/keys", { name: "x", readsOnly: true, capUsd: "5" })).status).toBe(
		400,
	);
});

test("usage stays in its project when the key moves to another", async () => {
	const { statements } = service.db;
	const make = async (name: string): Promise<string> =>
		(await customer.send("POST", "/api/console/projects", { name })).body.id;
	const [search, support] = [await make("search"), await make("support")];
	const mover = (await customer.send("POST", "/api/console/keys", { name: "mover", projectId: search })).body;
	const body = { model: "test-model", messages: [{ role: "user", content: "hi there" }], max_tokens: 5 };
	/** Sends a chat. After a 503, which says that the moved key is being loaded again, the request is repeated. */
	const ask = async (model = "test-model"): Promise<number> => {
		let status = 503;
		await waitFor(async () => {
			const answer = await service.post("/v1/chat/completions", mover.secret, { ...body, model });
			await answer.text();
			status = answer.status;
			return status !== 503;
		}, "an answer");
		return status;
	};
	const move = async (projectId: string | null) => {
		expect((await customer.send("PATCH", `/api/console/keys/${mover.key.id}`, { projectId })).status).toBe(200);
	};
	const byProject = async (query = "") => {
		const { data } = await (await service.get(`/v1/usage?group_by=project${query}`, mover.secret)).json();
		return Object.fromEntries(
			data.map((row: Record<string, string>) => [row.project_id, [row.requests, row.cost_usd]]),
		);
	};
	const usdOf = (sums: Record<string, [number, string]>) =>
		Object.values(sums).reduce((sum, [, usd]) => sum + (parseUsd(usd) ?? 0), 0);
	expect(await ask()).toBe(200);
	await move(support);
	expect([await ask(), await ask()]).toEqual([200, 200]);
	// Waits until the sums contain both requests, so that later usage updates existing rows of both tables.
	await service.settled();
	await foldAll(statements);
	await move(null);
	expect(await ask()).toBe(200);
	await move(search);
	expect([await ask(), await ask("no-such-model")]).toEqual([200, 404]);
	await service.settled();
	await foldAll(statements);
	const [cost] = await service.db
		.sql`select charged_nano_usd as nano from usage_event where key_id = ${mover.key.id} limit 1`;
	const its = (requests: number) => [requests, formatUsd((Number(cost?.nano) * requests) as NanoUsd)];
	const mine = `&key=${mover.key.id}`;
	const expected = { [search]: its(2), [support]: its(2), null: its(1) };
	for (const again of [false, true]) {
		if (again) await rebuildAllSums(statements);
		expect(await byProject(mine)).toEqual(expected);
		expect(usdOf(await byProject())).toBe(
			Number(parseUsd((await (await service.get("/v1/usage?group_by=", mover.secret)).json()).data[0].cost_usd)),
		);
		const series = (await customer.get(`/api/console/usage?group=project&key=${mover.key.id}`)).body;
		expect(series.groups.map((group: { id: string; requests: number }) => [group.id, group.requests]).sort()).toEqual(
			[
				["", 1],
				[search, 2],
				[support, 2],
			].sort(),
		);
	}
	const found = async (query: string) =>
		(await customer.get(`/api/console/requests?${query}`)).body.items.map(
			(item: { statusClass: string; keyId: string }) => item.keyId === mover.key.id && item.statusClass,
		);
	expect(await found(`project=${support}${mine}&model=test-model`)).toEqual(["ok", "ok"]);
	await waitFor(async () => (await found(`project=${search}`)).length === 3, "the refusal in the log");
	expect((await found(`project=${search}`)).sort()).toEqual(["ok", "ok", "refused"]);
	expect(await found(`project=${search}&status=refused${mine}`)).toEqual(["refused"]);
	expect(await found(`project=none${mine}`)).toEqual(["ok"]);
	await service.db.sql`
		insert into usage_hour (account_id, hour, key_id, model, class, requests, prompt_tokens, cached_tokens, completion_tokens,
			reasoning_tokens, charged_nano_usd, written_off_nano_usd, duration_ms, first_token_ms, first_tokens)
		values (${customer.accountId}, date_trunc('hour', now() - interval '401 days'), ${mover.key.id}, 'm', 'ok', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)`;
	const ago = (days: number) => `/api/console/requests?project=none&from=${Date.now() - days * 86_400_000}`;
	const statuses = ["/api/console/requests?project=none", ago(402), ago(399)].map(
		async (path) => (await customer.get(path)).status,
	);
	expect(await Promise.all(statuses)).toEqual([400, 400, 200]);
	const file = await (await customer.fetch(`/api/console/requests.csv?project=${support}`)).text();
	expect(file.trimEnd().split("\r\n")).toHaveLength(3);
	expect(await (await customer.fetch(`/api/console/usage.csv?project=${search}&group=project`)).text()).toContain(
		`${search},search,2,`,
	);
}, 120_000);

test("groups of usage beyond the limit are summed as one, each request once", async () => {
	const accountId = (await signedUp(service)).accountId;
	const write = (model: string, charged: number) => service.db.sql`
		insert into usage_hour (account_id, hour, key_id, model, class, requests, prompt_tokens, cached_tokens, completion_tokens,
			reasoning_tokens, charged_nano_usd, written_off_nano_usd, duration_ms, first_token_ms, first_tokens)
		values (${accountId}, date_trunc('hour', now()), 'k', ${model}, 'ok', 1, 0, 0, 0, 0, ${charged}, 0, 0, 0, 0)`;
	const filter = {
		...({ fromMs: Date.now() - 86_400_000, toMs: Date.now() + 1, bucket: "hour", group: "model" } as const),
		...{ model: null, keyId: null, projectId: null, status: null },
	};
	const read = () => usageSeries(service.db.statements, accountId, filter);
	const summed = (rows: readonly { costNanoUsd: NanoUsd; requests: number }[]) => [
		rows.reduce((sum, { costNanoUsd }) => sum + costNanoUsd, 0),
		rows.reduce((sum, { requests }) => sum + requests, 0),
	];
	await write("other", 1_000);
	for (let n = 1; n <= 49; n++) await write(`m${n}`, n);
	for (const count of [50, 51, 52, 53]) {
		const { groups, points, total } = await read();
		const all = [total.costNanoUsd as number, total.requests];
		expect([count, summed(groups), summed(points), all[1]]).toEqual([count, all, all, count]);
		expect(new Set(groups.map(({ id }) => id)).size).toBe(groups.length);
		await write(`m${count}`, count);
	}
});
