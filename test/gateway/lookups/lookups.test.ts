/** Look-ups and what describes the service: key, credits, usage, status, files and batches, the absence of deployments. */
import { beforeAll, describe, expect, test } from "bun:test";
import { foldUsage } from "../../../src/console/usage/usage-fold.ts";
import { updateAccount } from "../../../src/keys/account-admin.ts";
import { createProject } from "../../../src/keys/project-admin.ts";
import type { NanoUsd } from "../../../src/money/nano-usd.ts";
import { parseUsd } from "../../../src/money/nano-usd.ts";
import { untilEnd } from "../../support/at-end.ts";
import { withService } from "../../support/service.ts";
import { brokenSse, deployment, startEndpoints } from "../../support/upstream-endpoints.ts";
import { waitFor } from "../../support/wait.ts";
import { zoneByDay } from "../../support/zone-by-day.ts";

const usd = (text: string) => parseUsd(text) as NanoUsd;
const upstream = untilEnd(startEndpoints("vllm"));
const rates = 'input: "1", output: "2"';
const parameters = "max_tokens";
const service = await withService({
	models: [
		deployment({ id: "text", kind: "chat", url: upstream.url, dialect: "vllm", rates, parameters }),
		deployment({ id: "gone", kind: "rerank", url: "http://127.0.0.1:9/v1", dialect: "vllm", rates: 'search: "1"' }),
	].join("\n"),
});

const complete = (secret: string, more: object = {}) =>
	service.post("/v1/completions", secret, { model: "text", prompt: "a b c", max_tokens: 10, ...more });

/** 3 prompt tokens, 3 output tokens. */
const COST = "0.000009";

describe("GET /v1/key", () => {
	test("says what the key may spend and has spent", async () => {
		const accountId = await service.account();
		const settings = {
			capNanoUsd: 5_000_000_000 as never,
			models: ["text"],
			requestsPerMinute: 600,
			concurrencyMax: 7,
		};
		const { secret } = await service.key(accountId, settings as never);
		await (await complete(secret)).text();
		await service.settled();
		const response = await service.get("/v1/key", secret);
		expect(await response.json()).toEqual({
			data: {
				label: "test",
				limit: 5,
				limit_remaining: 4.999991,
				limit_reset: null,
				usage: 0.000009,
				is_free_tier: false,
				cap_usd: "5.00",
				cap_period: "lifetime",
				cap_spent_usd: COST,
				cap_renews_at: null,
				remaining_usd: "4.999991",
				spent_usd: COST,
				held_usd: "0.00",
				models: ["text"],
				expires_at: null,
				limits: { requests_per_minute: 600, concurrency: 7 },
				project: null,
			},
		});
	});

	test("of a key in a project it says what that may spend, by all its keys together", async () => {
		const accountId = await service.account();
		const cap = { name: "search", capNanoUsd: usd("2"), models: ["text", "gone"], requestsPerMinute: 60 };
		const { id: projectId } = await createProject(service.db.statements, accountId, cap);
		const [key, sister] = await Promise.all([1, 2].map(() => service.key(accountId, { projectId })));
		await (await complete(sister?.secret as string)).text();
		await service.settled();
		const { data } = await (await service.get("/v1/key", key?.secret)).json();
		expect(data).toMatchObject({ limit: null, spent_usd: "0.00" });
		expect(data.project).toEqual({
			id: projectId,
			name: "search",
			limit: 2,
			limit_remaining: 1.999991,
			limit_reset: null,
			cap_usd: "2.00",
			cap_period: "lifetime",
			cap_spent_usd: COST,
			cap_renews_at: null,
			remaining_usd: "1.999991",
			models: ["text", "gone"],
			limits: { requests_per_minute: 60, concurrency: null },
		});
	});

	test("of a cap that begins anew it says what is spent in the present period, and when the next one begins", async () => {
		const accountId = await service.account();
		const zone = zoneByDay();
		await updateAccount(service.db.statements, accountId, { timeZone: zone });
		const { id, secret } = await service.key(accountId, { capNanoUsd: usd("0.0005"), capPeriod: "day" });
		await (await complete(secret)).text();
		await service.settled();
		const { data } = await (await service.get("/v1/key", secret)).json();
		const fits = { limit: 0.0005, limit_reset: "daily", cap_usd: "0.0005", cap_period: "day" };
		expect(data).toMatchObject({ ...fits, cap_spent_usd: COST, remaining_usd: "0.000491", spent_usd: COST });
		const tomorrow = Temporal.Now.zonedDateTimeISO(zone).toPlainDate().add({ days: 1 });
		const midnight = new Date(tomorrow.toZonedDateTime(zone).epochMilliseconds).toISOString();
		expect(data.cap_renews_at).toBe(midnight);
		const refused = await complete(secret, { max_tokens: 1_000 });
		expect(refused.status).toBe(402);
		const { error } = await refused.json();
		expect(error).toMatchObject({ code: "key_cap_exceeded" });
		expect(error.message).toContain(`The cap begins anew at ${midnight}`);
		// Yesterday's spending stays in the sum of all, and out of today's.
		await service.db.sql`update usage_event set budgets = array[${`${id}:day:2001-01-01`}] where key_id = ${id}`;
		await service.db.sql`update lease set budget_id = ${`${id}:day:2001-01-01`} where budget_id like ${`${id}:day:%`}`;
		const next = await (await service.get("/v1/key", secret)).json();
		expect(next.data).toMatchObject({ cap_spent_usd: "0.00", remaining_usd: "0.0005", spent_usd: COST });
	});

	test("works without credit, but not without a key", async () => {
		const accountId = await service.account({ credit: null });
		const { secret } = await service.key(accountId);
		const { data } = await (await service.get("/v1/key", secret)).json();
		expect(data).toMatchObject({ limit: null, limit_remaining: null, cap_usd: null, spent_usd: "0.00", models: null });
		expect((await service.get("/v1/key")).status).toBe(401);
		expect((await service.post("/v1/key", secret, {})).status).toBe(405);
	});
});

describe("GET /v1/credits", () => {
	test("tells balance, held and spent apart, exactly", async () => {
		const { secret } = await service.customer();
		await (await complete(secret)).text();
		await service.settled();
		expect(await (await service.get("/v1/credits", secret)).json()).toEqual({
			data: {
				total_credits: 100,
				total_usage: 0.000009,
				balance_usd: "99.999991",
				available_usd: "99.999991",
				held_usd: "0.00",
				spent_usd: COST,
			},
		});
	});

	test("what a running request reserved is held", async () => {
		const { secret } = await service.customer();
		const never = Promise.withResolvers<void>();
		const event = JSON.stringify({ choices: [{ index: 0, text: "x", finish_reason: null }] });
		upstream.next(() => brokenSse([event], { stall: never.promise }));
		const response = await complete(secret, { stream: true });
		const id = response.headers.get("x-request-id") as string;
		await response.body?.getReader().read();
		const running = await (await service.get(`/v1/usage/${id}`, secret)).json();
		expect(running).toMatchObject({
			id,
			object: "usage",
			status: "running",
			model: "text",
			usage: null,
			cost_usd: null,
		});
		const { data } = await (await service.get("/v1/credits", secret)).json();
		expect(data.held_usd).toBe(running.reserved_usd);
		expect(data.balance_usd).toBe("100.00");
		expect(Number(data.available_usd)).toBeCloseTo(100 - Number(data.held_usd), 9);
		never.resolve();
		await service.settled();
		const settled = await (await service.get(`/v1/usage/${id}`, secret)).json();
		expect(settled).toMatchObject({ status: "settled", ending: "upstream_died", basis: "estimated" });
	});
});

describe("GET /v1/usage", () => {
	// The first fold of a database throws away what sums there are: no row of a test stands before it, whenever the job comes.
	beforeAll(() =>
		waitFor(async () => (await foldUsage(service.db.statements)) !== null, "the first fold, whoever makes it"),
	);

	/** Rows of sums as a fold writes them, at the edges of days. */
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

	test("sums by what is asked for, days in UTC with both ends, to the nano-dollar", async () => {
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

	test("by project it is what was used in it, in pages, and what was used in none is nobody's", async () => {
		const { accountId, secret, other } = await summed();
		const { id } = await createProject(service.db.statements, accountId, { name: "search" });
		/** Of a key's hours, as a fold writes them. */
		const inProject = (project: string, key: string) => service.db.sql`
			insert into usage_project_hour select account_id, hour, ${project}, key_id, model, class, requests, prompt_tokens, cached_tokens,
				completion_tokens, reasoning_tokens, charged_nano_usd, 0, 0, 0, 0 from usage_hour where key_id = ${key}`;
		await inProject(id, other.id);
		const seen = async (query: string) =>
			(await (await ask(secret, `${march}&group_by=project${query}`)).json()) as {
				data: object[];
				next: string | null;
			};
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

	test("pages of any length hold each row once, as JSON and as CSV; a formula is none", async () => {
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

	test("nobody sees another account's, and what cannot be asked is said with its name", async () => {
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
			[`?after=${Buffer.from('["x","",""]').toString("base64url")}`, "after"],
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

	test("one account cannot hold up the others: four of its questions at once, the rest is told to come back", async () => {
		const { secret } = await summed();
		const stranger = await service.customer();
		const holds = await service.db.sql.reserve();
		await holds`begin`;
		await holds`lock table usage_hour in access exclusive mode`;
		const asked = Array.from({ length: 6 }, () => ask(secret, march));
		const early = await Promise.race(asked);
		expect([early.status, early.headers.get("retry-after")]).toEqual([429, "1"]);
		// The rest of the service does not notice.
		expect((await service.get("/v1/key", stranger.secret)).status).toBe(200);
		await holds`rollback`;
		holds.release();
		const statuses = (await Promise.all(asked)).map(({ status }) => status).sort();
		expect(statuses).toEqual([200, 200, 200, 200, 429, 429]);
		expect((await ask(secret, march)).status).toBe(200);
	});

	test("a key that only reads opens the look-ups, and is refused everywhere else, whatever the path", async () => {
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
});

describe("GET /v1/usage/{id}", () => {
	test("answers at once by request id and by the answer's id", async () => {
		const { secret, accountId } = await service.customer();
		const response = await complete(secret);
		const requestId = response.headers.get("x-request-id") as string;
		const { id } = await response.json();
		for (const name of [requestId, id]) {
			expect(await (await service.get(`/v1/usage/${name}`, secret)).json()).toEqual({
				id: requestId,
				object: "usage",
				created: expect.any(Number),
				model: "text",
				status: "settled",
				endpoint: "completions",
				streamed: false,
				basis: "exact",
				ending: "finished",
				http_status: 200,
				usage: {
					prompt_tokens: 3,
					completion_tokens: 3,
					total_tokens: 6,
					prompt_tokens_details: { cached_tokens: 0 },
					completion_tokens_details: { reasoning_tokens: 0 },
					units: 0,
				},
				cost_usd: COST,
				reserved_usd: expect.stringMatching(/^\d+\.\d+$/),
				rate_card: "text@1",
				batch_id: null,
			});
		}
		expect(accountId).toBeString();
	});

	test("a recovered request costs what it was charged less what was credited back", async () => {
		const { secret, accountId } = await service.customer();
		const response = await complete(secret);
		const requestId = response.headers.get("x-request-id") as string;
		await service.settled();
		const [row] = await service.usage(accountId);
		await service.db.statements`select ledger_book('led_x', ${accountId}, 'credit_note', 4000,
			${`recovered:${row?.request_id}`}, 'recovery', '', false)`;
		expect((await (await service.get(`/v1/usage/${requestId}`, secret)).json()).cost_usd).toBe("0.000005");
	});

	test("another account's request, a refused one and nonsense are 404", async () => {
		const { secret } = await service.customer();
		const stranger = await service.customer();
		const done = await complete(secret);
		await done.text();
		const refused = await service.post("/v1/completions", secret, {});
		const foreign = done.headers.get("x-request-id");
		const ids = [foreign, refused.headers.get("x-request-id"), "nonsense", "%E0%A4%A", "a/b", `req_${"0".repeat(32)}`];
		for (const id of ids) {
			const response = await service.get(`/v1/usage/${id}`, stranger.secret);
			expect(response.status).toBe(404);
			expect((await response.json()).error.code).toBe("not_found");
		}
		expect((await service.get(`/v1/usage/${foreign}`)).status).toBe(401);
	});
});

describe("what is not deployed", () => {
	test.each([
		["/v1/embeddings", { model: "x", input: "y" }],
		["/v1/embeddings", {}],
		["/v1/images/generations", { model: "x", prompt: "y" }],
		["/v1/audio/transcriptions", {}],
		["/v1/files", {}],
		["/v1/batches", { input_file_id: "x" }],
		["/v1/batches/batch_1/cancel", {}],
	])("POST %s is a 503 service_unavailable that is not to be retried", async (path, body) => {
		const { secret } = await service.customer();
		const response = await service.post(path, secret, body);
		expect(response.status).toBe(503);
		expect(response.headers.get("x-should-retry")).toBe("false");
		expect((await response.json()).error).toMatchObject({ code: "service_unavailable", type: "server_error" });
		expect((await service.post(path, undefined, body)).status).toBe(401);
	});

	test("lists of files and batches say the same", async () => {
		const { secret } = await service.customer();
		for (const path of [
			"/v1/files",
			"/v1/files/file_1",
			"/v1/files/file_1/content",
			"/v1/batches",
			"/v1/batches/batch_1",
		])
			expect((await service.get(path, secret)).status).toBe(503);
	});

	test("a deployment without a server is a 503, charged nothing", async () => {
		const { secret, accountId } = await service.customer();
		const response = await service.post("/v1/rerank", secret, { model: "gone", query: "q", documents: ["d"] });
		expect([502, 503]).toContain(response.status);
		await service.settled();
		for (const row of await service.usage(accountId)) expect(row.charged_nano_usd).toBe("0");
	});
});

describe("GET /status", () => {
	test("is JSON for programs and a page without scripts for browsers", async () => {
		const json = await service.get("/status");
		expect(json.headers.get("content-type")).toBe("application/json");
		const answer = await json.json();
		expect(answer).toMatchObject({
			object: "status",
			status: "degraded",
			services: {
				chat: "connected",
				completions: "connected",
				embeddings: "unavailable",
				transcription: "unavailable",
				image_generation: "unavailable",
				rerank: "unavailable",
				batch: "unavailable",
			},
			models: [
				{ id: "text", kind: "chat", status: "connected" },
				{ id: "gone", kind: "rerank", status: "unavailable" },
			],
		});
		const page = await fetch(`${service.url}/status`, {
			headers: { accept: "text/html,application/xhtml+xml,*/*;q=0.8" },
		});
		expect(page.headers.get("content-type")).toBe("text/html; charset=utf-8");
		const html = await page.text();
		expect(html).toContain("Some services are not connected");
		expect(html).not.toContain("<script");
		const policy = page.headers.get("content-security-policy") as string;
		expect(policy).toContain("default-src 'none'");
		const style = /<style>([\s\S]*)<\/style>/.exec(html)?.[1] as string;
		expect(policy).toContain(`'sha256-${new Bun.CryptoHasher("sha256").update(style).digest("base64")}'`);
		const both = await fetch(`${service.url}/status`, { headers: { accept: "application/json, text/html;q=0.5" } });
		expect(both.headers.get("content-type")).toBe("application/json");
	});
});
