import { beforeAll, expect, test } from "bun:test";
import { foldUsage } from "../../../src/console/usage/usage-fold.ts";
import { createProject } from "../../../src/keys/project-admin.ts";
import { openTransaction } from "../../support/open-transaction.ts";
import { foldAll } from "../../support/sums.ts";
import { waitFor } from "../../support/wait.ts";
import { withLookups } from "./lookups-world.ts";

const { service } = await withLookups();

// A database's first aggregation deletes existing sums, so the test inserts its rows after it.
beforeAll(() =>
	waitFor(async () => (await foldUsage(service.db.statements)) !== null, "the first fold, by any instance"),
);

/** Inserts hourly sums at the edges of days, as the aggregation job would. */
async function summed() {
	const { accountId, secret } = await service.customer();
	const other = await service.key(accountId);
	const write = (hour: string, key: string, model: string, charged: string) => service.db.sql`
		insert into usage_hour (account_id, hour, key_id, model, class, requests, prompt_tokens, cached_tokens, completion_tokens,
			reasoning_tokens, charged_nano_usd, written_off_nano_usd, duration_ms, first_token_ms, first_tokens)
		values (${accountId}, ${hour}, ${key}, ${model}, 'ok', 2, 10, 1, 5, 0, ${charged}, 0, 0, 0, 0)`;
	await write("2026-03-01T00:00:00Z", "key_00", "=m", "1");
	await write("2026-03-01T23:00:00Z", "key_00", "=m", "1000000000");
	await write("2026-03-01T23:00:00Z", other.id, "n", "9007199254740993");
	await write("2026-03-02T00:00:00Z", "key_00", "=m", "5");
	await write("2026-02-28T23:00:00Z", "key_00", "=m", "7000");
	return { accountId, secret, other };
}
const ask = (secret: string, query: string, headers = {}) =>
	fetch(`${service.url}/v1/usage${query}`, { headers: { authorization: `Bearer ${secret}`, ...headers } });
const march = "?from=2026-03-01&to=2026-03-01";

test("usage sums by group and UTC day are exact to the nano-dollar", async () => {
	const { secret, other } = await summed();
	const by = async (group: string, range = march) => {
		const { data } = await (await ask(secret, `${range}&group_by=${group}`)).json();
		return data.map((row: Record<string, unknown>) => [row.day, row.model, row.key_id, row.requests, row.cost_usd]);
	};
	expect(await by("")).toEqual([[undefined, undefined, undefined, 6, "9007200.254740994"]]);
	expect(await by("model")).toEqual([
		[undefined, "=m", undefined, 4, "1.000000001"],
		[undefined, "n", undefined, 2, "9007199.254740993"],
	]);
	expect(await by("key,day")).toEqual([
		["2026-03-01", undefined, "key_00", 4, "1.000000001"],
		["2026-03-01", undefined, other.id, 2, "9007199.254740993"],
	]);
	expect(await by("day&group_by[]=model", "?from=2026-02-28&to=2026-03-02")).toEqual([
		["2026-02-28", "=m", undefined, 2, "0.000007"],
		["2026-03-01", "=m", undefined, 4, "1.000000001"],
		["2026-03-01", "n", undefined, 2, "9007199.254740993"],
		["2026-03-02", "=m", undefined, 2, "0.000000005"],
	]);
	expect(await by("day&key=key_00&model=n")).toEqual([]);
	const named = await (await ask(secret, `${march}&group_by=key,project&model=n`)).json();
	expect(named.data).toEqual([
		{
			object: "usage.sum",
			project_id: null,
			project_name: null,
			key_id: other.id,
			key_name: "test",
			requests: 2,
			prompt_tokens: 10,
			cached_tokens: 1,
			completion_tokens: 5,
			reasoning_tokens: 0,
			total_tokens: 15,
			cost_usd: "9007199.254740993",
		},
	]);
});

test("usage sums by project have pages and include usage outside projects", async () => {
	const { accountId, secret, other } = await summed();
	const { id } = await createProject(service.db.statements, accountId, { name: "search" });
	/** Copies a key's hourly sums into a project's sums, as the aggregation job would. */
	const inProject = (project: string, key: string) => service.db.sql`
		insert into usage_project_hour select account_id, hour, ${project}, key_id, model, class, requests, prompt_tokens, cached_tokens,
			completion_tokens, reasoning_tokens, charged_nano_usd, 0, 0, 0, 0 from usage_hour where key_id = ${key}`;
	await inProject(id, other.id);
	const seen = async (query: string) =>
		(await (await ask(secret, `${march}&group_by=project${query}`)).json()) as { data: object[]; next: string | null };
	const nobody = { project_id: null, project_name: null, requests: 4, cost_usd: "1.000000001" };
	const its = { project_id: id, project_name: "search", requests: 2, cost_usd: "9007199.254740993" };
	expect((await seen("")).data).toMatchObject([nobody, its]);
	const first = await seen("&limit=1");
	expect(first.data).toMatchObject([nobody]);
	expect((await seen(`&limit=1&after=${first.next}`)).data).toMatchObject([its]);
	expect((await seen(",key,model")).data).toMatchObject([{ key_id: "key_00" }, { project_id: id, key_id: other.id }]);
	const { id: later } = await createProject(service.db.statements, accountId, { name: "support" });
	const third = await service.key(accountId, { projectId: later });
	await service.db.sql`
		insert into usage_hour select account_id, hour, ${third.id}, model, class, requests, prompt_tokens, cached_tokens,
			completion_tokens, reasoning_tokens, 7, 0, 0, 0, 0 from usage_hour where key_id = ${other.id}`;
	await inProject(later, third.id);
	const second = await seen(`&limit=1&after=${first.next}`);
	expect((await seen(`&limit=1&after=${second.next}`)).data).toMatchObject([{ project_id: later, requests: 2 }]);
	expect((await seen("&project=none")).data).toMatchObject([nobody]);
	expect((await seen(`&project=${id}`)).data).toMatchObject([its]);
	const { data } = await (await ask(secret, `${march}&group_by=key&project=${later}`)).json();
	expect(data).toMatchObject([{ key_id: third.id, requests: 2, cost_usd: "0.000000007" }]);
	expect((await seen("&project=proj_of_nobody")).data).toEqual([]);
	const { secret: stranger } = await service.customer();
	expect((await (await ask(stranger, `${march}&project=${id}`)).json()).data).toEqual([]);
});

test("pages of usage sums of any length contain each row once, as JSON and CSV", async () => {
	const { secret } = await summed();
	const range = "?from=2026-02-01&to=2026-03-31&group_by=day,model,key";
	const all = (await (await ask(secret, range)).json()).data;
	expect(all).toHaveLength(4);
	for (const limit of [1, 2, 3]) {
		const seen: unknown[] = [];
		const lines: string[] = [];
		for (let url = `${range}&limit=${limit}`; url !== ""; ) {
			const csv = await ask(secret, url, { accept: "text/csv, */*;q=0.1" });
			expect(csv.headers.get("content-type")).toBe("text/csv; charset=utf-8");
			lines.push(...(await csv.text()).trimEnd().split("\r\n").slice(1));
			const page = await ask(secret, url);
			const { data, next, has_more } = await page.json();
			seen.push(...data);
			expect(has_more).toBe(next !== null);
			expect(csv.headers.get("link")).toBe(page.headers.get("link"));
			const link = /^<\/v1\/usage(.+)>; rel="next"$/.exec(page.headers.get("link") ?? "")?.[1] ?? "";
			expect(link.includes(next ?? "none")).toBe(has_more);
			url = link;
		}
		expect(seen).toEqual(all);
		expect(lines[0]).toBe("2026-02-28,'=m,key_00,,2,10,1,5,0,15,0.000007");
		expect(lines).toHaveLength(4);
	}
});

test("usage sums exclude other accounts, and errors name wrong parameters", async () => {
	const { secret } = await summed();
	const stranger = await service.customer();
	const none = await (await ask(stranger.secret, `${march}&key=key_00`)).json();
	expect([none.data, none.as_of, none.next]).toEqual([[], null, null]);
	for (const [query, param] of [
		["?from=2026-02-30", "from"],
		["?from=2026-3-1", "from"],
		["?to=tomorrow", "to"],
		["?from=2026-03-02&to=2026-03-01", "to"],
		["?from=2024-01-01&to=2026-03-01", "from"],
		["?group_by=day,hour", "group_by"],
		["?limit=0", "limit"],
		["?limit=10001", "limit"],
		["?limit=1e3", "limit"],
		["?after=x", "after"],
		...['["x","",""]', '["2026-02-30","","",""]', '["0000-00-00","","",""]'].map(
			(place) => [`?after=${Buffer.from(place).toString("base64url")}`, "after"] as const,
		),
		["?account=acc_1", "account"],
		["?model=a&model=b", "model"],
		[`?model=${"m".repeat(2000)}`, "model"],
	] as const) {
		const response = await ask(secret, query);
		const { error } = await response.json();
		expect([query, response.status, error.code, error.param]).toEqual([query, 400, "invalid_request", param]);
	}
	expect((await ask("", "")).status).toBe(401);
	expect((await service.post("/v1/usage", secret, {})).status).toBe(405);
});

test("the gateway refuses a query of usage by the account with most waiting queries", async () => {
	const { secret } = await summed();
	const stranger = await service.customer();
	const holds = await service.db.sql.reserve();
	await holds`begin`;
	await holds`lock table usage_hour in access exclusive mode`;
	// Two queries run and 64 wait, so one of 67 is refused.
	const asked = Array.from({ length: 67 }, () => ask(secret, march));
	const early = await Promise.race(asked);
	expect([early.status, early.headers.get("retry-after")]).toEqual([503, "2"]);
	const others = ask(stranger.secret, march);
	// Requests other than sums are still answered.
	expect((await service.get("/v1/key", stranger.secret)).status).toBe(200);
	await holds`rollback`;
	holds.release();
	expect((await others).status).toBe(200);
	const statuses = (await Promise.all(asked)).map(({ status }) => status);
	expect(statuses.filter((status) => status === 503)).toHaveLength(2);
	expect((await ask(secret, march)).status).toBe(200);
});

test("a read-only key may only call look-ups", async () => {
	const { accountId } = await summed();
	const { secret } = await service.key(accountId, { readsOnly: true, name: "reader" } as never);
	const { paths } = await (await service.get("/openapi.json")).json();
	const reads = ["/v1/models", "/v1/models/{id}", "/v1/key", "/v1/credits", "/v1/usage", "/v1/usage/{id}"];
	let tried = 0;
	for (const [path, methods] of Object.entries<Record<string, { security?: unknown[] }>>(paths)) {
		for (const [method, { security }] of Object.entries(methods)) {
			if (security !== undefined || path.startsWith("/v1/management")) continue;
			const response = await fetch(service.url + path.replace("{id}", "none"), {
				method: method.toUpperCase(),
				headers: { authorization: `Bearer ${secret}`, "content-type": "application/json" },
				...(method === "get" || method === "delete" ? {} : { body: '{"model":"text","prompt":"a"}' }),
			});
			const code = (await response.json()).error?.code ?? "none";
			if (reads.includes(path))
				expect({ path, code }).toEqual({ path, code: expect.stringMatching(/^(none|not_found|model_not_found)$/) });
			else
				expect({ path, method, status: response.status, code }).toEqual({
					path,
					method,
					status: 403,
					code: "read_only_key",
				});
			tried += 1;
		}
	}
	expect(tried).toBeGreaterThan(18);
	expect((await ask(secret, march)).status).toBe(200);
});

test("usage sums include all usage before `as_of` despite an open transaction", async () => {
	const { accountId, secret } = await service.customer();
	const { sql, statements } = service.db;
	const settle = async () => {
		const [row] = await sql`
			insert into usage_event (request_id, account_id, key_id, instance_id, epoch, model, rate_card_id, endpoint, streamed,
				reserved_nano_usd, charged_nano_usd, basis, ending, status, admitted_at)
			values (gen_random_uuid(), ${accountId}, 'key_00', 'i', 1, 'm', 'm@1', 'chat', false, 10, 10, 'exact', 'finished', 200, now())
			returning extract(epoch from settled_at) * 1000 as ms`;
		return Number(row?.ms);
	};
	await settle();
	await foldAll(statements);
	const commit = await openTransaction(sql, (tx) => tx`create temporary table held ()`);
	const settledMs = await settle();
	try {
		await waitFor(async () => (await foldUsage(statements)) !== null, "a fold");
		const { data, as_of: asOf } = await (await ask(secret, "?group_by=")).json();
		expect(data[0].requests).toBe(1);
		expect(Date.parse(asOf)).toBeLessThan(settledMs);
	} finally {
		await commit();
	}
});
