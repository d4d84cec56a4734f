import { type Static, t } from "elysia";
import { type CsvTurns, csvResponse } from "../../base/csv.ts";
import { mapInTurns } from "../../base/time-slice.ts";
import { pageFrom } from "../../db/page.ts";
import { formatUsd } from "../../money/nano-usd.ts";
import { accountRoutes, PAGE_QUERY, type Parts } from "../console-deps.ts";
import { type LogFilter, logCsv, logDetail, logPage } from "../log/log-page.ts";
import {
	type Bucket,
	DAY_MS,
	type UsageFilter,
	type UsageRange,
	type UsageSeries,
	usageSeries,
} from "./usage-query.ts";

const MOMENT_MS_MAX = 253_402_300_799_999;
const moment = t.Optional(t.Numeric({ minimum: 0, maximum: MOMENT_MS_MAX }));
const FILTER = {
	from: moment,
	to: moment,
	model: t.Optional(t.String({ maxLength: 200 })),
	key: t.Optional(t.String({ maxLength: 64 })),
	project: t.Optional(t.String({ minLength: 1, maxLength: 64 })),
};
const STATUSES = [t.Literal("ok"), t.Literal("failed"), t.Literal("left")] as const;
export const RANGE_QUERY = {
	from: moment,
	to: moment,
	bucket: t.Optional(t.Union([t.Literal("hour"), t.Literal("day"), t.Literal("week"), t.Literal("month")])),
	model: FILTER.model,
};
const usageQuery = t.Object({
	...FILTER,
	...RANGE_QUERY,
	status: t.Optional(t.Union([...STATUSES])),
	group: t.Optional(t.Union([t.Literal("model"), t.Literal("key"), t.Literal("project"), t.Literal("status")])),
});
const logQuery = t.Object({
	...PAGE_QUERY,
	...FILTER,
	status: t.Optional(t.Union([...STATUSES, t.Literal("refused")])),
	batch: t.Optional(t.String({ maxLength: 64 })),
});

const RANGE_MS_DEFAULT = 7 * DAY_MS;

export function usageRoutes(parts: Parts<"statements" | "clock" | "sessions" | "limiter">) {
	const { statements, clock, limiter } = parts;
	const filterOf = (query: Static<typeof usageQuery>): UsageFilter => {
		const { group = "model", status = null } = query;
		return { ...narrowedBy(query), ...parseRange(query, clock.wallMs()), group, status };
	};

	return accountRoutes(parts, "console-usage")
		.get(
			"/usage",
			({ member, query }): Promise<UsageSeries> => usageSeries(statements, member.accountId, filterOf(query)),
			{ query: usageQuery },
		)
		.get(
			"/usage.csv",
			async ({ member, query }) =>
				usageCsv(
					await usageSeries(statements, member.accountId, filterOf(query)),
					"usage",
					limiter.csvTurns(member.accountId),
				),
			{ query: usageQuery },
		)
		.get(
			"/requests",
			({ member, query }) =>
				pageFrom(
					query,
					(page) => logPage(statements, member.accountId, logFilter(query), page),
					({ cursor }) => cursor,
				),
			{ query: logQuery },
		)
		.get(
			"/requests.csv",
			({ member: { accountId }, query }) =>
				logCsv({ statements, turns: limiter.csvTurns(accountId) }, accountId, logFilter(query)),
			{ query: logQuery },
		)
		.get("/requests/:id", ({ member, params }) => logDetail(statements, member.accountId, params.id));
}

/** Parses a range; the default is the last week by day. */
export function parseRange(query: { from?: number; to?: number; bucket?: Bucket }, nowMs: number): UsageRange {
	const { bucket = "day", to: toMs = nowMs } = query;
	return { bucket, toMs, fromMs: query.from ?? toMs - RANGE_MS_DEFAULT };
}

function narrowedBy({ model, key, project }: Static<typeof usageQuery> | Static<typeof logQuery>) {
	return { model: model ?? null, keyId: key ?? null, projectId: project === "none" ? "" : (project ?? null) };
}

function logFilter(query: Static<typeof logQuery>): LogFilter {
	const { from, to, status, batch } = query;
	const [fromMs, toMs] = [from ?? null, to ?? null];
	return { ...narrowedBy(query), fromMs, toMs, status: status ?? null, batchId: batch ?? null };
}

export function usageCsv(series: UsageSeries, name: string, turns?: CsvTurns): Promise<Response> {
	const labels = new Map(series.groups.map(({ id, label }) => [id, label]));
	let done = false;
	return csvResponse(
		`${name}.csv`,
		["time", "group", "name", "requests", "prompt_tokens", "completion_tokens", "cost_usd"],
		async () => {
			if (done) return undefined;
			done = true;
			return mapInTurns(series.points, (point) => [
				new Date(point.atMs).toISOString(),
				point.group,
				labels.get(point.group) ?? point.group,
				point.requests,
				point.promptTokens,
				point.completionTokens,
				formatUsd(point.costNanoUsd),
			]);
		},
		turns,
	);
}
