import { csvLine } from "../../base/csv.ts";
import { type Statements, toView } from "../../db/statements.ts";
import type { DeploymentsView } from "../../deployments/deployments.ts";
import { displayDifference, formatUsd, type NanoUsd } from "../../money/nano-usd.ts";
import { ConsoleError } from "../console-error.ts";
import { bucketMiddle } from "../usage/model-speed.ts";
import {
	buildSeries,
	DAY_MS,
	HOUR_MS,
	type UsageRange,
	type UsageRow,
	type UsageSeries,
	type UsageSums,
	wholeBuckets,
} from "../usage/usage-query.ts";

export interface RevenueFilter extends UsageRange {
	/** `code`: the ending of settled requests, the error code of refused ones. */
	readonly group: "model" | "account" | "project" | "code";
	readonly model: string | null;
}

/** Longest range of groups that read the sums of each account, which are many more rows than the service's. */
const BY_ACCOUNT_MS_MAX = 92 * DAY_MS;
/** Hourly sums of the service exist for this time; older ones are per day (`usage_roll`). */
const HOURS_KEPT_MS = 39 * DAY_MS;
/** Accounts with usage in the last 28 days and less credit than this amount are listed as nearly out of credit. */
const LOW_NANO_USD = 10_000_000_000;

/** The service's usage over time, by hourly sums. Fault `invalid_request` if the range is empty or too long. */
export async function revenueSeries(statements: Statements, filter: RevenueFilter): Promise<UsageSeries> {
	const { group, model, ...range } = filter;
	const isByAccount = group === "account" || group === "project";
	if (isByAccount && range.toMs - range.fromMs > BY_ACCOUNT_MS_MAX)
		throw new ConsoleError("invalid_request", "By account or project, the date range is at most 92 days.", {
			param: "from",
		});
	const { bucket, fromMs, toMs } = wholeBuckets(range);
	const rows = await statements<object>`
		select u.group_id, case when u.group_id = 'other' and ${isByAccount}::boolean then 'Other' else coalesce(p.name, a.name) end as label, u.at,
			u.requests::float8 as requests, u.prompt_tokens::float8 as prompt_tokens, u.cached_tokens::float8 as cached_tokens,
			u.completion_tokens::float8 as completion_tokens, u.reasoning_tokens::float8 as reasoning_tokens, u.charged_nano_usd as cost_nano_usd,
			u.duration_ms as duration, u.first_token_ms as first, u.first_tokens::float8 as firsts
		from service_usage(${group}, ${bucket}, to_timestamp(${fromMs}::float8 / 1000), to_timestamp(${toMs}::float8 / 1000), ${model}::text) u
			left join account a on ${group}::text = 'account' and a.id = u.group_id
			left join project p on ${group}::text = 'project' and p.id = u.group_id
		order by u.at`;
	return buildSeries(rows.map(toView<UsageRow>), { bucket, fromMs, toMs });
}

interface Totals extends Omit<UsageSums, "reasoningTokens"> {
	readonly writtenOffNanoUsd: NanoUsd;
}

/**
 * Returns figures of the range, of the preceding period of the same length, and of the present. Reads hourly sums,
 * ledger entries, one row of each account with usage, and reservations of running requests, but no settled requests.
 */
export async function revenueFigures(statements: Statements, { model, ...asked }: RevenueFilter, nowMs: number) {
	const { fromMs, ...range } = wholeBuckets(asked);
	const toMs = Math.min(range.toMs, Math.max(nowMs, fromMs + 1));
	const wanted = 2 * fromMs - toMs;
	const stepMs = nowMs - wanted > HOURS_KEPT_MS ? DAY_MS : HOUR_MS;
	const beforeMs = Math.floor(wanted / stepMs) * stepMs;
	const [sums, entries, [now]] = await Promise.all([
		statements<object>`
			select h.hour >= to_timestamp(${fromMs}::float8 / 1000) as within, sum(h.requests)::float8 as requests, sum(h.prompt_tokens)::float8 as prompt_tokens,
				sum(h.cached_tokens)::float8 as cached_tokens, sum(h.completion_tokens)::float8 as completion_tokens,
				sum(h.charged_nano_usd) as cost_nano_usd, sum(h.written_off_nano_usd) as written_off_nano_usd
			from service_hour h where h.hour >= to_timestamp(${beforeMs}::float8 / 1000) and h.hour < to_timestamp(${toMs}::float8 / 1000)
				and h.model <> '' and (${model}::text is null or h.model = ${model}::text) group by 1`,
		statements<object>`
			select kind, sum(amount_nano_usd) as amount_nano_usd from ledger_entry
			where created_at >= to_timestamp(${fromMs}::float8 / 1000) and created_at < to_timestamp(${toMs}::float8 / 1000) group by 1 order by 1`,
		statements<object>`
			select coalesce((select sum(d.top_up_nano_usd + d.refund_nano_usd + d.adjustment_nano_usd + d.dispute_nano_usd + d.credit_note_nano_usd)
					from sealed_day d), 0)
				+ coalesce((select sum(e.amount_nano_usd) from ledger_entry e
					where e.created_at >= coalesce((select c.entries_from from seal_cursor c), '-infinity')), 0)
				- coalesce((select sum(h.charged_nano_usd) from service_hour h), 0) as prepaid_nano_usd,
				coalesce((select sum(r.reserved_nano_usd) from reservation r), 0) as reserved_nano_usd,
				(select count(*)::float8 from account a where a.created_at >= to_timestamp(${fromMs}::float8 / 1000)
					and a.created_at < to_timestamp(${toMs}::float8 / 1000)) as new,
				(select count(*)::float8 from usage_total t where t.last_hour < now() - interval '30 days') as unused,
				u.*
			from (
				select count(*) filter (where t.last_hour > now() - interval '1 day')::float8 as active1,
					count(*) filter (where t.last_hour > now() - interval '7 days')::float8 as active7, count(*)::float8 as active28,
					count(*) filter (where b.limit_nano_usd - t.charged_nano_usd < ${LOW_NANO_USD}::bigint)::float8 as low
				from usage_total t left join budget b on b.id = t.account_id where t.last_hour > now() - interval '28 days') u`,
	]);
	const totals = sums.map(toView<Totals & { within: boolean }>);
	return {
		total: totals.find(({ within }) => within) ?? null,
		before: totals.find(({ within }) => !within) ?? null,
		beforeMs,
		/** Movements of credit within the range, by kind. */
		entries: entries.map(toView<{ kind: string; amountNanoUsd: NanoUsd }>),
		/** `prepaidNanoUsd` is all unspent credit, less the debts of accounts below zero. */
		...toView<{ prepaidNanoUsd: NanoUsd; reservedNanoUsd: NanoUsd } & Readonly<Record<Count, number>>>(now ?? {}),
	};
}

type Count = "new" | "unused" | "active1" | "active7" | "active28" | "low";

interface Speed {
	readonly model: string;
	readonly kind: "first_token" | "rate";
	readonly atMs: number | null;
	readonly requests: number;
	readonly median: number;
	readonly high: number;
}

interface Load {
	readonly model: string;
	readonly replica: string;
	readonly atMs: number;
	/** Average number of requests in progress, and average capacity, while the replica was in the catalogue. */
	readonly used: number;
	readonly places: number;
}

interface Earned {
	readonly model: string;
	readonly atMs: number;
	readonly chargedNanoUsd: NanoUsd;
	readonly costNanoUsd: NanoUsd;
	readonly replicaHours: number;
}

/** Returns speeds, loads of replicas, and costs by model over time, from hourly sums. Faults as `wholeBuckets`. */
export async function serviceFigures(statements: Statements, filter: UsageRange & { readonly model: string | null }) {
	const { model, bucket, fromMs, toMs } = wholeBuckets(filter);
	const speeds = (by: string | null) => statements<object>`
		select model, kind, at, requests::float8 as requests, median, high
		from service_speed(${by}::text, to_timestamp(${fromMs}::float8 / 1000), to_timestamp(${toMs}::float8 / 1000), ${model}::text) order by model, at`;
	const [overTime, inAll, replicas, earned] = await Promise.all([
		speeds(bucket),
		speeds(null),
		statements<object>`
			select h.model, h.replica, date_trunc(${bucket}::text, h.hour, 'UTC') as at, sum(h.used_seconds) / sum(h.seconds) as used,
				sum(h.place_seconds) / sum(h.seconds) as places
			from replica_hour h where h.hour >= to_timestamp(${fromMs}::float8 / 1000) and h.hour < to_timestamp(${toMs}::float8 / 1000)
				and (${model}::text is null or h.model = ${model}::text) group by 1, 2, 3 having sum(h.seconds) > 0 order by 2, 3`,
		statements<object>`
			select x.model, x.at, sum(x.charged) as charged_nano_usd, round(sum(x.cost)) as cost_nano_usd, sum(x.seconds) / 3600 as replica_hours from (
				select h.model, date_trunc(${bucket}::text, h.hour, 'UTC') as at, h.charged_nano_usd as charged, h.cost_pico_usd / 1000 as cost, 0 as seconds
				from service_hour h where h.model <> '' and h.hour >= to_timestamp(${fromMs}::float8 / 1000) and h.hour < to_timestamp(${toMs}::float8 / 1000)
				union all
				select h.model, date_trunc(${bucket}::text, h.hour, 'UTC'), 0, h.cost_nano_usd::numeric, h.seconds
				from replica_hour h where h.hour >= to_timestamp(${fromMs}::float8 / 1000) and h.hour < to_timestamp(${toMs}::float8 / 1000)
			) x where (${model}::text is null or x.model = ${model}::text) group by 1, 2 order by 1, 2`,
	]);
	const speedOf = (row: object) => {
		const { median, high, ...speed } = toView<Speed>(row);
		return { ...speed, median: bucketMiddle(median), high: bucketMiddle(high) };
	};
	return {
		bucket,
		toMs,
		starts: buildSeries([], { bucket, fromMs, toMs }).starts,
		speeds: overTime.map(speedOf),
		speedsInAll: inAll.map(speedOf),
		replicas: replicas.map(toView<Load>),
		earned: earned.map(toView<Earned>),
	};
}

/** Returns a CSV row for each model and bucket. The cost includes replicas without requests. */
export function marginCsv(earned: readonly Earned[]): string {
	const rows = earned.map(({ atMs, model, chargedNanoUsd, costNanoUsd, replicaHours }) => [
		new Date(atMs).toISOString(),
		model,
		...[chargedNanoUsd, costNanoUsd, displayDifference(chargedNanoUsd, costNanoUsd)].map(formatUsd),
		replicaHours.toFixed(3),
	]);
	return [["time", "model", "revenue_usd", "cost_usd", "margin_usd", "replica_hours"], ...rows].map(csvLine).join("");
}

/** Adds the time since the previous call to the load and cost of each replica in the catalogue. */
export async function sampleService(statements: Statements, { models, replicas }: DeploymentsView): Promise<void> {
	const costs = new Map(models.map(({ id, cost }) => [id, cost]));
	const tokens = [...costs].map(([model, cost]) => ({ model, input: cost?.input ?? 0, output: cost?.output ?? 0 }));
	const seen = replicas
		.filter(({ draining }) => !draining)
		.map(({ modelId: model, alias: replica, inFlight: used, maxConcurrency: places }) => {
			return { model, replica, used, places, cost: costs.get(model)?.replicaHour ?? 0 };
		});
	await statements`select service_sample(${JSON.stringify(seen)}, ${JSON.stringify(tokens)})`;
}
