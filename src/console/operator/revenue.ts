import type { Statements } from "../../db/statements.ts";
import { toView } from "../../db/view-of.ts";
import type { NanoUsd } from "../../money/nano-usd.ts";
import { ConsoleError } from "../console-error.ts";
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
