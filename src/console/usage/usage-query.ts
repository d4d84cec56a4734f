import { type Statements, toView } from "../../db/statements.ts";
import type { UsageCounts } from "../../ledger/event.ts";
import { displaySum, type NanoUsd, ZERO_USD } from "../../money/nano-usd.ts";
import { ConsoleError, cursorRefused } from "../console-error.ts";

type UsageGroup = "model" | "key" | "project" | "status";
export type StatusClass = "ok" | "failed" | "left";

export type Bucket = "hour" | "day" | "week" | "month";

export interface UsageRange {
	readonly fromMs: number;
	readonly toMs: number;
	readonly bucket: Bucket;
}

export interface UsageFilter extends UsageRange {
	readonly group: UsageGroup;
	readonly model: string | null;
	readonly keyId: string | null;
	/** Project of the key at admission; "": no project. */
	readonly projectId: string | null;
	readonly status: StatusClass | null;
}

export interface UsageSums extends Omit<UsageCounts, "units"> {
	readonly requests: number;
	readonly costNanoUsd: NanoUsd;
}

export type UsageSeries = ReturnType<typeof buildSeries>;

export const HOUR_MS = 3_600_000;
export const DAY_MS = 24 * HOUR_MS;
const BY_HOUR_MS_MAX = 31 * DAY_MS;
const BY_DAY_MS_MAX = 400 * DAY_MS;
/** Most groups in the list; the group `other` is the sum of all others. */
const GROUPS_MAX = 50;
const OTHER = "other";

export interface UsageRow extends UsageSums {
	readonly groupId: string;
	readonly label: string | null;
	readonly atMs: number;
	readonly duration: number;
	readonly first: number;
	readonly firsts: number;
}

/**
 * Returns an account's usage over time. Reads only the hourly sums, so its cost does not depend on the number of
 * requests. Extends the range to whole buckets (UTC). Fault `invalid_request` if the range is too long.
 */
export async function usageSeries(statements: Statements, accountId: string, filter: UsageFilter) {
	const { bucket, fromMs, toMs } = wholeBuckets(filter);
	const rows = await statements<object>`
		with u as (
			select case ${filter.group}::text when 'model' then h.model when 'key' then h.key_id when 'project' then h.project_id else h.class end as group_id,
				date_trunc(${filter.bucket}::text, h.hour, 'UTC') as at, sum(h.requests)::float8 as requests,
				sum(h.prompt_tokens)::float8 as prompt_tokens, sum(h.cached_tokens)::float8 as cached_tokens,
				sum(h.completion_tokens)::float8 as completion_tokens, sum(h.reasoning_tokens)::float8 as reasoning_tokens,
				sum(h.charged_nano_usd) as cost_nano_usd, sum(h.duration_ms) as duration, sum(h.first_token_ms) as first,
				sum(h.first_tokens)::float8 as firsts
			from usage_split(${accountId}, to_timestamp(${fromMs}::double precision / 1000), to_timestamp(${toMs}::double precision / 1000),
				${filter.group === "project" || filter.projectId !== null}::boolean, ${filter.projectId}::text) h
			where (${filter.model}::text is null or h.model = ${filter.model}::text)
				and (${filter.keyId}::text is null or h.key_id = ${filter.keyId}::text)
				and (${filter.status}::text is null or h.class = ${filter.status}::text)
			group by 1, 2 having sum(h.requests) > 0
		)
		select u.*, coalesce(k.name, p.name) as label from u left join api_key k on ${filter.group}::text = 'key' and k.id = u.group_id
			left join project p on ${filter.group}::text = 'project' and p.id = u.group_id
		order by u.at`;
	return buildSeries(rows.map(toView<UsageRow>), { bucket, fromMs, toMs });
}

/** Extends a range to whole buckets. Fault `invalid_request` if it is empty or too long. */
export function wholeBuckets<Range extends UsageRange>(range: Range): Range {
	if (range.toMs <= range.fromMs)
		throw new ConsoleError("invalid_request", "The date range is empty.", { param: "to" });
	if (range.toMs - range.fromMs > (range.bucket === "hour" ? BY_HOUR_MS_MAX : BY_DAY_MS_MAX))
		throw new ConsoleError("invalid_request", "The date range is too long: at most 31 days by hour, 400 days by day.", {
			param: "from",
		});
	const last = startOf(range.bucket, range.toMs - 1);
	return { ...range, fromMs: startOf(range.bucket, range.fromMs), toMs: afterOf(range.bucket, last) };
}

function startOf(bucket: Bucket, atMs: number): number {
	if (bucket === "month") return monthOf(atMs, 0);
	const day = Math.floor(atMs / DAY_MS);
	// Weeks start on Monday, and day 0 (1 January 1970) was a Thursday: hence `+ 3`.
	return bucket === "hour"
		? Math.floor(atMs / HOUR_MS) * HOUR_MS
		: (bucket === "week" ? day - ((day + 3) % 7) : day) * DAY_MS;
}

const LENGTHS_MS = { hour: HOUR_MS, day: DAY_MS, week: 7 * DAY_MS } as const;
const afterOf = (bucket: Bucket, startMs: number): number =>
	bucket === "month" ? monthOf(startMs, 1) : startMs + LENGTHS_MS[bucket];

function monthOf(atMs: number, more: number): number {
	const at = new Date(atMs);
	return Date.UTC(at.getUTCFullYear(), at.getUTCMonth() + more, 1);
}

/**
 * Builds the series from rows of hourly sums. `range` must consist of whole buckets. `starts` has the starts of all
 * buckets (weeks start on Monday, all in UTC), `groups` the groups with the highest cost first.
 */
export function buildSeries(rows: readonly UsageRow[], range: UsageRange) {
	const starts: number[] = [];
	for (let at = range.fromMs; at < range.toMs; at = afterOf(range.bucket, at)) starts.push(at);
	const all = [...Map.groupBy(rows, ({ groupId }) => groupId)].map(([id, own]) =>
		groupOf(id, own[0]?.label ?? id, own),
	);
	const dearest = all.sort((a, b) => b.costNanoUsd - a.costNanoUsd || b.requests - a.requests);
	const hasRest = dearest.length > GROUPS_MAX;
	// A model with the id `other` is added to the group `other`.
	const groups = dearest.filter(({ id }) => !hasRest || id !== OTHER).slice(0, GROUPS_MAX);
	const shown = new Set(groups.map(({ id }) => id));
	const idOf = ({ groupId }: UsageRow) => (shown.has(groupId) ? groupId : OTHER);
	if (hasRest)
		groups.push(
			groupOf(
				OTHER,
				"Other",
				rows.filter((row) => idOf(row) === OTHER),
			),
		);
	const points = [...Map.groupBy(rows, ({ atMs }) => atMs)].flatMap(([atMs, now]) =>
		[...Map.groupBy(now, idOf)].map(([group, own]) => ({ atMs, group, ...sumsOf(own) })),
	);
	return { ...range, starts, groups, points, total: sumsOf(rows) };
}

function groupOf(id: string, label: string, rows: readonly UsageRow[]) {
	const sums = sumsOf(rows);
	const [duration, first, firsts] = [sumOf(rows, "duration"), sumOf(rows, "first"), sumOf(rows, "firsts")];
	return {
		...{ id, label, ...sums },
		meanMs: sums.requests === 0 ? null : duration / sums.requests,
		meanFirstTokenMs: firsts === 0 ? null : first / firsts,
	};
}

function sumsOf(rows: readonly UsageRow[]): UsageSums {
	return {
		requests: sumOf(rows, "requests"),
		promptTokens: sumOf(rows, "promptTokens"),
		cachedTokens: sumOf(rows, "cachedTokens"),
		completionTokens: sumOf(rows, "completionTokens"),
		reasoningTokens: sumOf(rows, "reasoningTokens"),
		costNanoUsd: rows.reduce((sum, { costNanoUsd }) => displaySum(sum, costNanoUsd), ZERO_USD),
	};
}

const sumOf = (
	rows: readonly UsageRow[],
	name: Exclude<keyof UsageRow, "groupId" | "label" | "atMs" | "costNanoUsd">,
) => rows.reduce((sum, row) => sum + row[name], 0);

/** Usage of one key and one model on a day (UTC). */
interface UsageDayRow extends Omit<UsageCounts, "units"> {
	readonly accountId: string;
	readonly day: string;
	readonly keyId: string;
	readonly model: string;
	readonly requests: number;
	readonly costNanoUsd: NanoUsd;
	readonly cursor: string;
}

interface UsageRowFilter {
	readonly from: string;
	readonly to: string;
	readonly accountId: string | null;
	readonly keyId: string | null;
	readonly model: string | null;
}

const DAYS_MAX = 400;
const DAYS_OF_ALL_MAX = 31;

/**
 * Reads only the hourly sums, in the order account, day, key, model: usage that arrives between two pages moves no row
 * to another page. Fault `invalid_request` if the range is empty or too long.
 */
export async function usageRows(
	statements: Statements,
	filter: UsageRowFilter,
	page: { asked: number; after: string | null },
): Promise<UsageDayRow[]> {
	checkRange(filter);
	const [account, day, key, model] = page.after === null ? [null, null, null, null] : placeOf(page.after);
	const rows = await statements<object>`
		select h.account_id, to_char(date_trunc('day', h.hour, 'UTC') at time zone 'UTC', 'YYYY-MM-DD') as day, h.key_id, h.model,
			sum(h.requests)::float8 as requests, sum(h.prompt_tokens)::float8 as prompt_tokens, sum(h.cached_tokens)::float8 as cached_tokens,
			sum(h.completion_tokens)::float8 as completion_tokens, sum(h.reasoning_tokens)::float8 as reasoning_tokens,
			sum(h.charged_nano_usd) as cost_nano_usd
		from usage_hour h
		where h.hour >= ${filter.from}::timestamp at time zone 'UTC' and h.hour < (${filter.to}::timestamp + interval '1 day') at time zone 'UTC'
			and (${filter.accountId}::text is null or h.account_id = ${filter.accountId}::text)
			and (${filter.keyId}::text is null or h.key_id = ${filter.keyId}::text)
			and (${filter.model}::text is null or h.model = ${filter.model}::text)
			and (${account}::text is null or h.account_id >= ${account}::text)
		group by 1, 2, 3, 4
		having ${account}::text is null
			or (h.account_id, to_char(date_trunc('day', h.hour, 'UTC') at time zone 'UTC', 'YYYY-MM-DD'), h.key_id, h.model)
				> (${account}::text, ${day}::text, ${key}::text, ${model}::text)
		order by 1, 2, 3, 4 limit ${page.asked}`;
	return rows.map((row) => {
		const shown = toView<Omit<UsageDayRow, "cursor">>(row);
		const place = [shown.accountId, shown.day, shown.keyId, shown.model];
		return { ...shown, cursor: Buffer.from(JSON.stringify(place)).toString("base64url") };
	});
}

function checkRange({ from, to, accountId }: UsageRowFilter): void {
	const days = (Date.parse(to) - Date.parse(from)) / DAY_MS + 1;
	if (!(days >= 1)) throw new ConsoleError("invalid_request", "The date range is empty.", { param: "to" });
	if (days > (accountId === null ? DAYS_OF_ALL_MAX : DAYS_MAX))
		throw new ConsoleError(
			"invalid_request",
			"The date range is too long: at most {all} days, or {one} days for one account.",
			{ values: { all: DAYS_OF_ALL_MAX, one: DAYS_MAX }, param: "from" },
		);
}

function placeOf(cursor: string): readonly [string, string, string, string] {
	try {
		const place: unknown = JSON.parse(Buffer.from(cursor, "base64url").toString());
		if (Array.isArray(place) && place.length === 4 && place.every((part) => typeof part === "string"))
			return place as [string, string, string, string];
	} catch {
		// An undecodable cursor gets the fault below.
	}
	throw cursorRefused();
}
