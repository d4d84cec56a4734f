import { expect, test } from "bun:test";
import { systemClock } from "../../src/base/clock.ts";
import { silentLog } from "../../src/base/log.ts";
import { createFixedCatalog } from "../../src/catalog/catalog.ts";
import {
	marginCsv,
	type RevenueFilter,
	revenueFigures,
	revenueSeries,
	sampleService,
	serviceFigures,
} from "../../src/console/operator/revenue.ts";
import { sumUsageByDay } from "../../src/console/usage/usage-fold.ts";
import { deployedModel } from "../../src/deployments/deployed-model.ts";
import type { DeploymentsView } from "../../src/deployments/deployments.ts";
import { sealDays } from "../../src/ledger/seals.ts";
import { nanoUsd } from "../../src/money/nano-usd.ts";
import { chatSpec } from "../catalog/model-specs.ts";
import { withDatabase } from "../support/database.ts";
import { LONG } from "../support/long-form.ts";
import { foldAll } from "../support/sums.ts";
import { writeRefusals, writeUsage } from "./usage-rows.ts";

/** Compares every figure of the operators' pages with a plain sum over the raw rows. */

const db = await withDatabase();
const { sql, statements } = db;
const DAY_MS = 86_400_000;
const REQUESTS = LONG ? 200_000 : 5_000;
/** More accounts than the page lists, so that it sums the others as `other`. */
const ACCOUNTS = 60;
const accountId = (n: number) => `acc_${n}`;

await sql`insert into model_cost values ('model-0', 120000, 340000), ('model-1', 7, 11)`;
for (let n = 0; n < ACCOUNTS; n++) {
	const id = accountId(n);
	await sql`insert into account (id, email, name, created_at) values (${id}, ${`${id}@example.com`}, ${id}, now() - ${n * 3}::int * interval '1 day')`;
	await sql`insert into budget (id, kind, account_id, limit_nano_usd) values (${id}, 'account', ${id}, ${n % 2 === 0 ? 1e9 : 500e9}::bigint)`;
	await sql`insert into project (id, account_id, name) values (${`prj_${n}`}, ${id}, ${`project ${n}`})`;
	// Some accounts have no recent usage.
	const rows = Math.round(REQUESTS / ACCOUNTS);
	await writeUsage(db, { accountId: id, keyIds: [`key_${n}`], rows, days: 95, models: 4, projectId: `prj_${n}` });
	if (n % 10 === 0)
		await sql`delete from usage_event where account_id = ${id} and admitted_at > now() - interval '30 days'`;
}
// Several hours on each of the last three days.
await writeUsage(db, { accountId: accountId(1), keyIds: ["key_1"], rows: 500, days: 3, models: 3 });
await writeRefusals(db, { accountId: accountId(1), keyIds: ["key_1"], rows: 300, days: 50, models: 2 });
await sql`
	insert into refused_request
	select (jsonb_populate_record(r, jsonb_build_object('request_id', gen_random_uuid(), 'code', 'rate_limit_exceeded'))).* from refused_request r
	where r.available_nano_usd % 3 = 0`;
await sql`update refused_request set repeats = repeats + 3 where available_nano_usd % 7 = 0`;
await sql`
	insert into ledger_entry (id, account_id, kind, amount_nano_usd, source_ref, actor, created_at)
	select 'led_' || n, 'acc_' || n % ${ACCOUNTS}::int, (array['top_up', 'refund', 'adjustment', 'dispute', 'credit_note'])[1 + n % 5],
		(case when n % 5 in (1, 3) then -1 else 7 end) * 1000000000::bigint * n, 'ref ' || n, 'test', now() - n * interval '11 hours'
	from generate_series(1, 200) n`;
await sql`insert into reservation (request_id, account_id, key_id, instance_id, epoch, model, reserved_nano_usd, admitted_at)
	select gen_random_uuid(), 'acc_1', 'key_1', 'i', 1, 'model-0', 12345, now() from generate_series(1, 3)`;
// Calls the function directly: this sum takes longer than the timeout of a page's statement.
await sql`select usage_fold()`;
await foldAll(statements);

const nowMs = Date.now();
const filter = (more: Partial<RevenueFilter> = {}): RevenueFilter => {
	return { fromMs: nowMs - 29 * DAY_MS, toMs: nowMs, bucket: "day", group: "model", model: null, ...more };
};
const from = (atMs: number) => new Date(atMs).toISOString();
type Point = readonly (string | number)[];
const sorted = (points: readonly Point[]) => points.map((point) => point.join(" ")).toSorted();

type Shown = Awaited<ReturnType<typeof revenueSeries>>["points"][number];
const numbersOf = (p: Shown): Point => [
	...[p.group, p.atMs, p.requests, p.promptTokens, p.cachedTokens, p.completionTokens, p.costNanoUsd],
];

/** Computes the expected series from the requests themselves. */
async function rawSeries({ group, bucket, model }: RevenueFilter, [fromMs, toMs]: readonly [number, number]) {
	const rows = await sql<{ id: string; at: Date; n: number; p: number; c: number; o: number; nano: string }[]>`
		select case ${group} when 'model' then model when 'code' then ending when 'account' then account_id else coalesce(project_id, '') end as id,
			date_trunc(${bucket}, admitted_at, 'UTC') as at, count(*)::int as n, sum(prompt_tokens)::int as p, sum(cached_tokens)::int as c,
			sum(completion_tokens)::int as o, sum(charged_nano_usd) as nano
		from usage_event where admitted_at >= ${from(fromMs)} and admitted_at < ${from(toMs)} and (${model}::text is null or model = ${model}) group by 1, 2`;
	return rows.map(({ id, at, n, p, c, o, nano }) => [id, at.getTime(), n, p, c, o, Number(nano)]);
}

for (const group of ["model", "code", "account", "project"] as const)
	for (const [bucket, days] of [
		["hour", 2],
		["day", 30],
		["week", 60],
		["month", 92],
	] as const)
		for (const model of [null, "model-1"])
			test(`revenue by ${group} and ${bucket}${model ? " of a model" : ""} equals the requests`, async () => {
				const asked = filter({ group, bucket, model, fromMs: nowMs - days * DAY_MS });
				const found = await revenueSeries(statements, asked);
				const raw = await rawSeries(asked, [found.fromMs, found.toMs]);
				const listed = new Set(found.groups.map(({ id }) => id));
				if (group === "account") expect(listed.size).toBe(51);
				const shown = found.points.map(numbersOf);
				const isRefused = ([id]: Point) => id === "insufficient_quota" || id === "rate_limit_exceeded";
				expect(sorted(shown.filter(([id]) => id !== "other" && !isRefused([id as string])))).toEqual(
					sorted(raw.filter(([id]) => listed.has(String(id)))),
				);
				const nano = (points: readonly Point[]) => points.reduce((sum, point) => sum + Number(point[6]), 0);
				expect(nano(shown)).toBe(nano(raw));
				expect(found.total.costNanoUsd as number).toBe(nano(raw));
				for (const { atMs } of found.points) expect(found.starts).toContain(atMs);
				if (group === "code" && model === null) {
					const [refused] =
						await sql`select sum(1 + repeats)::int as n from refused_request where refused_at >= ${from(found.fromMs)}`;
					expect(shown.filter(isRefused).reduce((sum, point) => sum + Number(point[2]), 0)).toBe(refused?.n);
				}
			});

for (const days of [1, 7, 29, 90])
	test(`revenue of ${days} days and of the period before equals the raw rows`, async () => {
		const fromMs = nowMs - days * DAY_MS;
		const figures = await revenueFigures(statements, filter({ fromMs }), nowMs);
		const first = (await revenueSeries(statements, filter({ fromMs }))).fromMs;
		const raw = async (since: number, until: number) => {
			const [row] = await sql`
				select count(*)::int as n, sum(prompt_tokens)::int as p, sum(cached_tokens)::int as c, sum(completion_tokens)::int as o,
					sum(charged_nano_usd)::text as nano, sum(written_off_nano_usd)::text as off
				from usage_event where admitted_at >= ${from(since)} and admitted_at < ${from(until)}`;
			return row && [row.n, row.p, row.c, row.o, Number(row.nano), Number(row.off)];
		};
		const figuresOf = (t: typeof figures.total) =>
			t && [
				t.requests,
				t.promptTokens,
				t.cachedTokens,
				t.completionTokens,
				t.costNanoUsd as number,
				t.writtenOffNanoUsd as number,
			];
		expect(figuresOf(figures.total)).toEqual((await raw(first, nowMs)) ?? null);
		if (days < 90) expect(figuresOf(figures.before)).toEqual((await raw(figures.beforeMs, first)) ?? null);
		// The period before has the length of the shown one, up to an hour; up to a day where sums are daily.
		expect(Math.abs(nowMs - first - (first - figures.beforeMs))).toBeLessThan(days > 19 ? DAY_MS : 3_600_000);
		const entries = await sql`
			select kind, sum(amount_nano_usd)::text as nano from ledger_entry where created_at >= ${from(first)} and created_at < ${from(nowMs)} group by 1 order by 1`;
		expect(figures.entries.map(({ kind, amountNanoUsd }) => [kind, amountNanoUsd as number])).toEqual(
			entries.map(({ kind, nano }) => [kind, Number(nano)]),
		);
		const [now] = await sql`
			select (select sum(amount_nano_usd) from ledger_entry) - (select sum(charged_nano_usd) from usage_event) as prepaid,
				(select sum(reserved_nano_usd)::text from reservation) as reserved,
				(select count(*)::int from account where created_at >= ${from(first)} and created_at < ${from(nowMs)}) as new,
				count(*) filter (where last > now() - interval '1 day')::int as d1, count(*) filter (where last > now() - interval '7 days')::int as d7,
				count(*) filter (where last > now() - interval '28 days')::int as d28, count(*) filter (where last < now() - interval '30 days')::int as unused,
				count(*) filter (where last > now() - interval '28 days' and left_over < 10000000000)::int as low
			from (select account_id, max(date_trunc('hour', admitted_at, 'UTC')) as last,
				(select limit_nano_usd from budget b where b.id = e.account_id) - sum(charged_nano_usd) as left_over from usage_event e group by 1) u`;
		expect(now?.unused).toBe(ACCOUNTS / 10);
		expect({ ...figures, total: 0, before: 0, beforeMs: 0, entries: 0 } as object).toEqual({
			...{ total: 0, before: 0, beforeMs: 0, entries: 0 },
			...{
				prepaidNanoUsd: Number(now?.prepaid),
				reservedNanoUsd: Number(now?.reserved),
				new: now?.new,
				unused: now?.unused,
			},
			...{ active1: now?.d1, active7: now?.d7, active28: now?.d28, low: now?.low },
		});
	});

test("speeds match the requests within 12 %; costs match the requests' tokens", async () => {
	for (const [bucket, days] of [
		["hour", 1],
		["day", 30],
		["month", 92],
	] as const) {
		const asked = filter({ bucket, fromMs: nowMs - days * DAY_MS });
		const { fromMs } = await revenueSeries(statements, asked);
		const { speeds, earned } = await serviceFigures(statements, asked);
		const raw = await sql`
			select model, date_trunc(${bucket}, admitted_at, 'UTC') as at, kind, count(*)::int as n, percentile_disc(array[0.5, 0.95]) within group (order by size) as at_p
			from usage_event, lateral (values ('first_token', first_token_ms::float8), ('rate', case when completion_tokens >= 16 and duration_ms > first_token_ms
				then 1000.0 * (completion_tokens - 1) / (duration_ms - first_token_ms) end)) as t(kind, size)
			where ending = 'finished' and size is not null and admitted_at >= ${from(fromMs)} group by 1, 2, 3`;
		const key = (row: { model: string; kind: string; atMs: number | null }) => `${row.model} ${row.kind} ${row.atMs}`;
		const found = new Map(speeds.map((speed) => [key(speed), speed]));
		expect(found.size).toBe(raw.length);
		for (const { model, kind, at, n, at_p } of raw) {
			const speed = found.get(key({ model, kind, atMs: at.getTime() }));
			expect(speed?.requests).toBe(n);
			expect(Math.abs((speed?.median ?? 0) / at_p[0] - 1)).toBeLessThan(0.12);
			expect(Math.abs((speed?.high ?? 0) / at_p[1] - 1)).toBeLessThan(0.12);
		}
		const costs = await sql`
			select e.model, date_trunc(${bucket}, admitted_at, 'UTC') as at, sum(charged_nano_usd)::text as nano,
				round(coalesce(sum(prompt_tokens * c.input_pico_usd + completion_tokens * c.output_pico_usd), 0) / 1000)::text as cost
			from usage_event e left join model_cost c on c.model = e.model where admitted_at >= ${from(fromMs)} group by 1, 2 order by 1, 2`;
		expect(earned.map((row) => [row.model, row.atMs, row.chargedNanoUsd, row.costNanoUsd] as unknown[])).toEqual(
			costs.map(({ model, at, nano, cost }) => [model, at.getTime(), Number(nano), Number(cost)]),
		);
	}
});

test("the CSV of margins has a row for each model and time bucket", () => {
	const row = { model: "a", atMs: 86_400_000, replicaHours: 1.5 };
	expect(marginCsv([{ ...row, chargedNanoUsd: nanoUsd(3_000_000_001), costNanoUsd: nanoUsd(5_000_000_000) }])).toBe(
		"time,model,revenue_usd,cost_usd,margin_usd,replica_hours\r\n1970-01-02T00:00:00.000Z,a,3.000000001,5.00,-1.999999999,1.500\r\n",
	);
});

test("closing days of the ledger does not change the sum of prepaid credit", async () => {
	const before = (await revenueFigures(statements, filter(), nowMs)).prepaidNanoUsd;
	await sealDays({ statements, clock: systemClock });
	const [sealed] = await sql`select count(*)::int as n from sealed_day`;
	expect(sealed?.n).toBeGreaterThan(0);
	expect((await revenueFigures(statements, filter(), nowMs)).prepaidNanoUsd).toBe(before);
});

test("two consoles that sample replicas count each minute and its cost once", async () => {
	const catalog = createFixedCatalog({ statements, clock: systemClock, log: silentLog });
	await catalog.setModels([{ ...chatSpec("m"), cost: { replicaHour: nanoUsd(3_600_000), input: 5, output: 6 } }]);
	const view: DeploymentsView = {
		...{ gateways: 1, connected: () => true, find: () => undefined },
		models: [...catalog.current().models.values()].map(deployedModel),
		replicas: [
			{
				...{ alias: "m#1", modelId: "m", inFlight: 3, maxConcurrency: 8, draining: false },
				...{ url: "http://127.0.0.1:8000/v1", dialect: "vllm", health: "up", breaker: "closed" },
				...{ refused: 0, contradictions: 0, promptTokens: 0, cachedTokens: 0, waitMs: 0 },
			},
		],
	};
	await sampleService(statements, view);
	await sql`update replica_hour set sampled_at = sampled_at - interval '60 seconds'`;
	const same = JSON.stringify([{ model: "m", replica: "m#1", used: 3, places: 8, cost: 3_600_000 }]);
	await sql.begin(async (first) => {
		await first`select service_sample(${same}, '[]')`;
		// The transaction of the first console's sample is still open.
		await sampleService(statements, view);
	});
	await Promise.all(Array.from({ length: 8 }, () => sampleService(statements, view)));
	const [row] =
		await sql`select sum(seconds) as s, sum(used_seconds) as u, sum(place_seconds) as p, sum(cost_nano_usd) as c from replica_hour`;
	expect(Math.abs(row?.s - 120)).toBeLessThan(5);
	expect([row?.u, row?.p, row?.c].map((sum) => Math.round((1000 * sum) / row?.s) / 1000)).toEqual([3, 8, 1_000]);
	const { replicas, earned } = await serviceFigures(
		statements,
		filter({ bucket: "hour", fromMs: nowMs - DAY_MS, toMs: nowMs + 3_600_000, model: "m" }),
	);
	expect(replicas[0]).toMatchObject({ model: "m", replica: "m#1", used: expect.closeTo(3), places: expect.closeTo(8) });
	expect((earned[0]?.replicaHours ?? 0) * 3600).toBeCloseTo(row?.s, 3);
	expect(earned[0]).toMatchObject({ chargedNanoUsd: 0, costNanoUsd: Math.round(row?.c) });
	const [cost] =
		await sql`select input_pico_usd::int as i, output_pico_usd::int as o from model_cost where model = 'm'`;
	expect(cost).toEqual({ i: 5, o: 6 });
});

test("revenue and speeds stay equal when old hours are summed into days", async () => {
	// Moves all rows 41 days into the past.
	for (const [table, column] of [
		["usage_event", "admitted_at"],
		["service_hour", "hour"],
		["model_speed", "hour"],
	] as const) {
		await sql`delete from ${sql(table)} where ${sql(column)} < date_trunc('day', now() - interval '2 days', 'UTC')`;
		await sql`update ${sql(table)} set ${sql(column)} = ${sql(column)} - interval '41 days'`;
	}
	const asked = filter({ fromMs: nowMs - 45 * DAY_MS, toMs: nowMs - 40 * DAY_MS });
	const rows = async () =>
		Number((await sql`select count(*) as n from service_hour where hour >= ${from(asked.fromMs)}`)[0]?.n);
	const before = {
		hours: await rows(),
		series: await revenueSeries(statements, asked),
		speeds: (await serviceFigures(statements, asked)).speeds,
	};
	await Promise.all([sumUsageByDay(statements), sumUsageByDay(statements)]);
	await sumUsageByDay(statements);
	expect(await rows()).toBeLessThan(before.hours / 2);
	const after = await revenueSeries(statements, asked);
	expect(after).toEqual(before.series);
	expect(sorted(after.points.map(numbersOf))).toEqual(sorted(await rawSeries(asked, [after.fromMs, after.toMs])));
	expect((await serviceFigures(statements, asked)).speeds).toEqual(before.speeds);
});
