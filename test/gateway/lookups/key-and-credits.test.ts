import { describe, expect, test } from "bun:test";
import { updateAccount } from "../../../src/keys/account-admin.ts";
import { createProject } from "../../../src/keys/project-admin.ts";
import { type NanoUsd, parseUsd } from "../../../src/money/nano-usd.ts";
import { brokenSse } from "../../support/upstream-endpoints.ts";
import { zoneByDay } from "../../support/zone-by-day.ts";
import { COST, withLookups } from "./lookups-world.ts";

const usd = (text: string) => parseUsd(text) as NanoUsd;
const { upstream, service, complete } = await withLookups();

describe("GET /v1/key", () => {
	test("shows the limits and the spending of the key", async () => {
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
				limits: { requests_per_minute: 600, concurrency: 7, tokens_per_minute: null },
				project: null,
			},
		});
	});

	test("shows the cap and the spending of the key's project", async () => {
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
			limits: { requests_per_minute: 60, concurrency: null, tokens_per_minute: null },
		});
	});

	test("shows the spending of the cap's current period and the period's end", async () => {
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
		expect(error.message).toContain(`The cap renews at ${midnight}`);
		// Moves today's spending to an earlier day, so that it stays in the total but not in today's sum.
		const { sql } = service.db;
		const [lease] = await sql`select budget_id from lease where budget_id like ${`${id}:day:%`}`;
		const [today, before] = [lease?.budget_id as string, `${id}:day:2001-01-01`];
		await sql`update usage_event set budgets = array[${before}] where key_id = ${id}`;
		await sql`update lease set budget_id = ${before} where budget_id = ${today}`;
		const next = await (await service.get("/v1/key", secret)).json();
		expect(next.data).toMatchObject({ cap_spent_usd: "0.00", remaining_usd: "0.0005", spent_usd: COST });
		// Restores the lease's budget, because the service could not return this credit when it stops and would wait.
		await sql`update lease set budget_id = ${today} where budget_id = ${before}`;
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
	test("gives balance, held and spent amounts separately and exactly", async () => {
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

	test("counts the reservation of a running request as held until the request ends", async () => {
		const { secret } = await service.customer();
		const never = Promise.withResolvers<void>();
		const event = JSON.stringify({ choices: [{ index: 0, text: "x", finish_reason: null }] });
		upstream.next(() => brokenSse([event], { stall: never.promise }));
		const response = await complete(secret, { stream: true });
		const id = response.headers.get("x-request-id") as string;
		await response.body?.getReader().read();
		const running = await (await service.get(`/v1/usage/${id}`, secret)).json();
		const nothing = { usage: null, cost_usd: null };
		expect(running).toMatchObject({ id, object: "usage", status: "running", model: "text", ...nothing });
		const { data } = await (await service.get("/v1/credits", secret)).json();
		expect(data.held_usd).toBe(running.reserved_usd);
		expect(data.balance_usd).toBe("100.00");
		expect(Number(data.available_usd)).toBeCloseTo(100 - Number(data.held_usd), 9);
		never.resolve();
		await service.settled();
		const settled = await (await service.get(`/v1/usage/${id}`, secret)).json();
		expect(settled).toMatchObject({ status: "settled", ending: "upstream_died", basis: "estimated" });
		expect((await (await service.get("/v1/credits", secret)).json()).data.held_usd).toBe("0.00");
	});
});
