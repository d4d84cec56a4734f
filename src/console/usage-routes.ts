import { Elysia, t } from "elysia";
import { formatUsd } from "../money/nano-usd.ts";
import type { ConsoleParts } from "./console-deps.ts";
import { csvResponse } from "./csv.ts";
import { ACCOUNT_QUERY, PAGE_QUERY, pageOf } from "./page-query.ts";
import { requestDetail } from "./request-detail.ts";
import type { RequestFilter, RequestRow } from "./request-log.ts";
import { findRequest, requestPage } from "./request-log.ts";
import type { UsageFilter, UsageSeries } from "./usage-query.ts";
import { DAY_MS, usageSeries } from "./usage-query.ts";

const MOMENT_MS_MAX = 253_402_300_799_999;
const moment = t.Optional(t.Numeric({ minimum: 0, maximum: MOMENT_MS_MAX }));
const FILTER = {
	from: moment,
	to: moment,
	model: t.Optional(t.String({ maxLength: 200 })),
	key: t.Optional(t.String({ maxLength: 64 })),
	status: t.Optional(t.Union([t.Literal("ok"), t.Literal("failed"), t.Literal("left")])),
};
const usageQuery = t.Object({
	...ACCOUNT_QUERY,
	...FILTER,
	bucket: t.Optional(t.Union([t.Literal("hour"), t.Literal("day")])),
	group: t.Optional(t.Union([t.Literal("model"), t.Literal("key"), t.Literal("status")])),
});
const logQuery = t.Object({ ...PAGE_QUERY, ...FILTER });

const RANGE_MS_DEFAULT = 7 * DAY_MS;
const CSV_PAGE_ROWS = 2_000;
const CSV_ROWS_MAX = 1_000_000;

interface FilterQuery {
	from?: number;
	to?: number;
	model?: string;
	key?: string;
	status?: "ok" | "failed" | "left";
}

/** Usage over time, and the log of requests. */
export function usageRoutes(parts: ConsoleParts) {
	const { hot, visits, clock } = parts;
	const filterOf = (
		query: FilterQuery & { bucket?: "hour" | "day"; group?: "model" | "key" | "status" },
	): UsageFilter => {
		const toMs = query.to ?? clock.wallMs();
		return {
			fromMs: query.from ?? toMs - RANGE_MS_DEFAULT,
			toMs,
			bucket: query.bucket ?? "day",
			group: query.group ?? "model",
			model: query.model ?? null,
			keyId: query.key ?? null,
			status: query.status ?? null,
		};
	};

	return new Elysia({ name: "console-usage" })
		.get(
			"/usage",
			({ request, query }): Promise<UsageSeries> =>
				usageSeries(hot, visits.account(request).accountId, filterOf(query)),
			{ query: usageQuery },
		)
		.get(
			"/usage.csv",
			async ({ request, query }) => {
				const series = await usageSeries(hot, visits.account(request).accountId, filterOf(query));
				return usageCsv(series);
			},
			{ query: usageQuery },
		)
		.get(
			"/requests",
			async ({ request, query }): Promise<{ items: RequestRow[]; next: string | null }> => {
				const { accountId } = visits.account(request);
				const { shown, asked, after } = pageOf(query);
				const rows = await requestPage(hot, accountId, logFilter(query), { asked, after });
				const items = rows.slice(0, shown);
				return {
					items: items.map(({ row }) => row),
					next: rows.length > shown ? (items.at(-1)?.cursor ?? null) : null,
				};
			},
			{ query: logQuery },
		)
		.get(
			"/requests.csv",
			({ request, query }) => {
				const { accountId } = visits.account(request);
				return requestsCsv(parts, accountId, logFilter(query));
			},
			{ query: logQuery },
		)
		.get(
			"/requests/:id",
			async ({ request, params }) => {
				const { accountId } = visits.account(request);
				return requestDetail(hot, await findRequest(hot, accountId, params.id));
			},
			{ query: t.Object(ACCOUNT_QUERY) },
		);
}

function logFilter(query: FilterQuery): RequestFilter {
	return {
		fromMs: query.from ?? null,
		toMs: query.to ?? null,
		model: query.model ?? null,
		keyId: query.key ?? null,
		status: query.status ?? null,
	};
}

function usageCsv(series: UsageSeries): Response {
	const labels = new Map(series.groups.map(({ id, label }) => [id, label]));
	let done = false;
	return csvResponse(
		"usage.csv",
		["time", "group", "name", "requests", "prompt_tokens", "completion_tokens", "cost_usd"],
		async () => {
			if (done) return undefined;
			done = true;
			return series.points.map((point) => [
				new Date(point.atMs).toISOString(),
				point.group,
				labels.get(point.group) ?? point.group,
				point.requests,
				point.promptTokens,
				point.completionTokens,
				formatUsd(point.costNanoUsd),
			]);
		},
	);
}

const LOG_HEAD =
	"time,request_id,model,key_id,key_name,endpoint,streamed,prompt_tokens,cached_tokens,completion_tokens,reasoning_tokens,cost_usd,duration_ms,first_token_ms,status,ending,basis".split(
		",",
	);

function requestsCsv(parts: ConsoleParts, accountId: string, filter: RequestFilter): Response {
	let after: string | null = null;
	let left = CSV_ROWS_MAX;
	let ended = false;
	return csvResponse("requests.csv", LOG_HEAD, async () => {
		if (ended) return undefined;
		const rows = await requestPage(parts.hot, accountId, filter, { asked: Math.min(CSV_PAGE_ROWS, left), after });
		left -= rows.length;
		after = rows.at(-1)?.cursor ?? null;
		ended = rows.length < CSV_PAGE_ROWS || left <= 0;
		return rows.map(({ row }) => [
			new Date(row.atMs).toISOString(),
			row.id,
			row.model,
			row.keyId,
			row.keyName,
			row.endpoint,
			row.streamed,
			row.promptTokens,
			row.cachedTokens,
			row.completionTokens,
			row.reasoningTokens,
			formatUsd(row.costNanoUsd),
			row.durationMs,
			row.firstTokenMs,
			row.status,
			row.ending,
			row.basis,
		]);
	});
}
