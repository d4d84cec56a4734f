import { type Static, t } from "elysia";
import { csvResponse } from "../../base/csv.ts";
import { pageFrom } from "../../db/page.ts";
import { formatUsd } from "../../money/nano-usd.ts";
import { accountRoutes } from "../account-routes.ts";
import type { Parts } from "../console-deps.ts";
import { type LogFilter, logCsv, logDetail, logPage } from "../log/log-page.ts";
import { PAGE_QUERY } from "../page-query.ts";
import type { UsageFilter, UsageSeries } from "./usage-query.ts";
import { DAY_MS, usageSeries } from "./usage-query.ts";

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
const usageQuery = t.Object({
	...FILTER,
	status: t.Optional(t.Union([...STATUSES])),
	bucket: t.Optional(t.Union([t.Literal("hour"), t.Literal("day")])),
	group: t.Optional(t.Union([t.Literal("model"), t.Literal("key"), t.Literal("project"), t.Literal("status")])),
});
const logQuery = t.Object({
	...PAGE_QUERY,
	...FILTER,
	status: t.Optional(t.Union([...STATUSES, t.Literal("refused")])),
	batch: t.Optional(t.String({ maxLength: 64 })),
});

const RANGE_MS_DEFAULT = 7 * DAY_MS;

export function usageRoutes(parts: Parts<"statements" | "clock" | "sessions">) {
	const { statements, clock } = parts;
	const filterOf = (query: Static<typeof usageQuery>): UsageFilter => {
		const { bucket = "day", group = "model", status = null, to: toMs = clock.wallMs() } = query;
		return { ...narrowedBy(query), bucket, group, status, toMs, fromMs: query.from ?? toMs - RANGE_MS_DEFAULT };
	};

	return accountRoutes(parts, "console-usage")
		.get(
			"/usage",
			({ member, query }): Promise<UsageSeries> => usageSeries(statements, member.accountId, filterOf(query)),
			{ query: usageQuery },
		)
		.get(
			"/usage.csv",
			async ({ member, query }) => usageCsv(await usageSeries(statements, member.accountId, filterOf(query))),
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
		.get("/requests.csv", ({ member, query }) => logCsv(statements, member.accountId, logFilter(query)), {
			query: logQuery,
		})
		.get("/requests/:id", ({ member, params }) => logDetail(statements, member.accountId, params.id));
}

function narrowedBy({ model, key, project }: Static<typeof usageQuery> | Static<typeof logQuery>) {
	return { model: model ?? null, keyId: key ?? null, projectId: project === "none" ? "" : (project ?? null) };
}

function logFilter(query: Static<typeof logQuery>): LogFilter {
	const { from, to, status, batch } = query;
	const [fromMs, toMs] = [from ?? null, to ?? null];
	return { ...narrowedBy(query), fromMs, toMs, status: status ?? null, batchId: batch ?? null };
}

function usageCsv(series: UsageSeries): Promise<Response> {
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
