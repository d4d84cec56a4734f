import type { Statements } from "../../db/statements.ts";
import type { TokenSumColumns, TokenSums } from "../../ledger/token-sums.ts";
import { type NanoUsd, nanoUsd, shownSum, sumOfColumn } from "../../money/nano-usd.ts";
import { ConsoleError } from "../console-error.ts";

export type UsageGroup = "model" | "key" | "project" | "status";
export type StatusClass = "ok" | "failed" | "left";

export interface UsageFilter {
	readonly fromMs: number;
	/** Exclusive. */
	readonly toMs: number;
	readonly bucket: "hour" | "day";
	readonly group: UsageGroup;
	readonly model: string | null;
	readonly keyId: string | null;
	/** Project at the time of use; "": no project. */
	readonly projectId: string | null;
	readonly status: StatusClass | null;
}

type Growing<Sums> = { -readonly [Name in keyof Sums]: Sums[Name] };

export interface UsageSums extends Growing<TokenSums> {
	requests: number;
	costNanoUsd: NanoUsd;
}

export interface UsageGroupSums extends UsageSums {
	readonly id: string;
	readonly label: string;
	readonly meanMs: number | null;
	readonly meanFirstTokenMs: number | null;
}

export interface UsagePoint {
	readonly atMs: number;
	/** Id of the group. */
	readonly group: string;
	requests: number;
	promptTokens: number;
	completionTokens: number;
	costNanoUsd: NanoUsd;
}

export interface UsageSeries {
	readonly bucketMs: number;
	readonly fromMs: number;
	readonly toMs: number;
	/** Highest cost first. */
	readonly groups: UsageGroupSums[];
	readonly points: UsagePoint[];
	readonly total: UsageSums;
}

export const HOUR_MS = 3_600_000;
export const DAY_MS = 24 * HOUR_MS;
const BY_HOUR_MS_MAX = 31 * DAY_MS;
const BY_DAY_MS_MAX = 400 * DAY_MS;
/** Groups listed; cheaper ones are summed as `other`. */
const GROUPS_MAX = 50;
const OTHER = "other";

interface Row extends TokenSumColumns {
	group_id: string;
	label: string | null;
	at: Date;
	requests: string;
	charged: string;
	duration: number;
	first: number;
	firsts: string;
}

/**
 * An account's usage over time, from the hourly sums only: the time does not depend on the number of requests. The
 * range is widened to whole buckets (UTC). Fault invalid_request if it is too long.
 */
export async function usageSeries(
	statements: Statements,
	accountId: string,
	filter: UsageFilter,
): Promise<UsageSeries> {
	const bucketMs = filter.bucket === "hour" ? HOUR_MS : DAY_MS;
	const fromMs = Math.floor(filter.fromMs / bucketMs) * bucketMs;
	const toMs = Math.ceil(filter.toMs / bucketMs) * bucketMs;
	if (filter.toMs <= filter.fromMs) throw new ConsoleError("invalid_request", "The range is empty.", { param: "to" });
	// Of the requested range: one that begins within a bucket covers one more bucket.
	if (filter.toMs - filter.fromMs > (filter.bucket === "hour" ? BY_HOUR_MS_MAX : BY_DAY_MS_MAX))
		throw new ConsoleError("invalid_request", "The range is too long: at most 31 days by hour, 400 days by day.", {
			param: "from",
		});
	const rows = await statements<Row>`
		with u as (
			select case ${filter.group}::text when 'model' then h.model when 'key' then h.key_id when 'project' then h.project_id else h.class end as group_id,
				date_trunc(${filter.bucket}::text, h.hour, 'UTC') as at, sum(h.requests) as requests, sum(h.prompt_tokens) as prompt_tokens,
				sum(h.cached_tokens) as cached_tokens, sum(h.completion_tokens) as completion_tokens, sum(h.reasoning_tokens) as reasoning_tokens,
				sum(h.charged_nano_usd) as charged, sum(h.duration_ms) as duration, sum(h.first_token_ms) as first, sum(h.first_tokens) as firsts
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
	return seriesOf(rows, { bucketMs, fromMs, toMs });
}

function seriesOf(rows: readonly Row[], range: { bucketMs: number; fromMs: number; toMs: number }): UsageSeries {
	const total = noSums();
	const all = new Map<string, GroupSums>();
	for (const row of rows) {
		addTo(total, row);
		let group = all.get(row.group_id);
		if (group === undefined) {
			group = { ...noSums(), id: row.group_id, label: row.label ?? row.group_id, duration: 0, first: 0, firsts: 0 };
			all.set(row.group_id, group);
		}
		addGroup(group, row);
	}
	const dearest = [...all.values()].sort((a, b) => b.costNanoUsd - a.costNanoUsd || b.requests - a.requests);
	const hasRest = dearest.length > GROUPS_MAX;
	// A model may be named like the rest: then it is part of the rest.
	const groups = dearest.filter(({ id }) => !hasRest || id !== OTHER).slice(0, GROUPS_MAX);
	const shown = new Set(groups.map(({ id }) => id));
	const idOf = (row: Row) => (shown.has(row.group_id) ? row.group_id : OTHER);
	if (hasRest) {
		const rest: GroupSums = { ...noSums(), id: OTHER, label: "Other", duration: 0, first: 0, firsts: 0 };
		for (const row of rows) if (idOf(row) === OTHER) addGroup(rest, row);
		groups.push(rest);
	}
	const points = new Map<string, UsagePoint>();
	for (const row of rows) {
		const group = idOf(row);
		const atMs = row.at.getTime();
		const name = `${atMs} ${group}`;
		const point = points.get(name) ?? {
			atMs,
			group,
			requests: 0,
			promptTokens: 0,
			completionTokens: 0,
			costNanoUsd: nanoUsd(0),
		};
		point.requests += Number(row.requests);
		point.promptTokens += Number(row.prompt_tokens);
		point.completionTokens += Number(row.completion_tokens);
		point.costNanoUsd = shownSum(point.costNanoUsd, sumOfColumn(row.charged));
		points.set(name, point);
	}
	return { ...range, groups: groups.map(groupView), points: [...points.values()], total };
}

interface GroupSums extends UsageSums {
	id: string;
	label: string;
	duration: number;
	first: number;
	firsts: number;
}

function noSums(): UsageSums {
	return {
		requests: 0,
		promptTokens: 0,
		cachedTokens: 0,
		completionTokens: 0,
		reasoningTokens: 0,
		costNanoUsd: nanoUsd(0),
	};
}

function addTo(sums: UsageSums, row: Row): void {
	sums.requests += Number(row.requests);
	sums.promptTokens += Number(row.prompt_tokens);
	sums.cachedTokens += Number(row.cached_tokens);
	sums.completionTokens += Number(row.completion_tokens);
	sums.reasoningTokens += Number(row.reasoning_tokens);
	sums.costNanoUsd = shownSum(sums.costNanoUsd, sumOfColumn(row.charged));
}

function addGroup(group: GroupSums, row: Row): void {
	addTo(group, row);
	group.duration += row.duration;
	group.first += row.first;
	group.firsts += Number(row.firsts);
}

function groupView({ duration, first, firsts, ...sums }: GroupSums): UsageGroupSums {
	return {
		...sums,
		meanMs: sums.requests === 0 ? null : duration / sums.requests,
		meanFirstTokenMs: firsts === 0 ? null : first / firsts,
	};
}
