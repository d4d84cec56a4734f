import { assert } from "../../base/assert.ts";
import type { Statements } from "../../db/statements.ts";
import { ConsoleError } from "../console-error.ts";
import type { LedgerRow } from "../credit/credit-ledger.ts";

/** A movement of credit other than usage. Amounts are `bigint`, because a month's sum may exceed NanoUsd's range. */
export interface StatementEntry {
	readonly id: string;
	readonly kind: Exclude<LedgerRow["kind"], "usage">;
	readonly amountNanoUsd: bigint;
	readonly note: string;
	readonly sourceRef: string;
	readonly atMs: number;
}

/** Usage of a model on a day (UTC) in a project. */
export interface StatementUsage {
	readonly day: string;
	readonly model: string;
	/** Project of the key at admission; empty: none. */
	readonly projectId: string;
	readonly projectName: string;
	readonly requests: bigint;
	readonly promptTokens: bigint;
	readonly completionTokens: bigint;
	readonly chargedNanoUsd: bigint;
}

/** A month (UTC) of an account: `opening + entries − usage − late = closing`. */
export type Statement = ReturnType<typeof statementOf>;

/** `closed`: final. `over`: the month has ended, but its last days are not sealed. `running`: the present month. */
export type MonthState = "running" | "over" | "closed";

export const ENTRIES_MAX = 10_000;
const MONTH = /^(20\d\d)-(0[1-9]|1[0-2])$/;

/** A row as JSON: bigints become decimal texts, because JSON numbers lose digits. */
type Texts<Fields> = { [Name in keyof Fields]: Fields[Name] extends bigint ? string : Fields[Name] };

interface Row {
	opening: string | null;
	to_date: string | null;
	usage: string | null;
	own_to_date: string | null;
	closing: string | null;
	entries_before: string;
	live_before: string;
	live_usage: string;
	promotion_used: string;
	running: boolean;
	sums: { kind: StatementEntry["kind"]; amount: string; count: number }[];
	entries: Texts<StatementEntry>[];
	days: Texts<StatementUsage>[];
}

/** Parses `2027-01` to its first day. Fault invalid_request. */
export function parseMonth(month: string): string {
	if (!MONTH.test(month))
		throw new ConsoleError("invalid_request", "`month` must be a month such as 2027-01.", { param: "month" });
	return `${month}-01`;
}

/**
 * Closes the months whose days are all sealed, each once. Late usage of a month is the account's total usage until the
 * month's end, minus the total stored with the previous closed month.
 */
export async function closeMonths(statements: Statements, accountIds: readonly string[]): Promise<void> {
	await statements`
		with known as (
			select i.id, (select max(c.month) from closed_month c where c.account_id = i.id) as last,
				(select s.day from seal_cursor s where s.id = 1) as sealed_to,
				least((select a.created_at from account a where a.id = i.id),
					(select min(e.created_at) from ledger_entry e where e.account_id = i.id),
					(select min(h.hour) from usage_hour h where h.account_id = i.id)) as first
			from json_array_elements_text(${JSON.stringify(accountIds)}::text::json) i(id)
		), months as (
			select k.id, m::date as month, (m + interval '1 month') at time zone 'UTC' as until, m at time zone 'UTC' as since
			from known k, generate_series(coalesce(k.last + interval '1 month', date_trunc('month', k.first at time zone 'UTC')),
				date_trunc('month', k.sealed_to::timestamp) - interval '1 month', interval '1 month') m
		), sums as (
			select m.id, m.month,
				coalesce((select sum(h.charged_nano_usd) from usage_hour h
					where h.account_id = m.id and h.hour >= m.since and h.hour < m.until), 0) as usage,
				coalesce((select t.charged_nano_usd from usage_total t where t.account_id = m.id), 0)
					- coalesce((select sum(h.charged_nano_usd) from usage_hour h where h.account_id = m.id and h.hour >= m.until), 0) as to_date,
				coalesce((select b.limit_nano_usd from budget b where b.id = m.id), 0)
					- coalesce((select sum(e.amount_nano_usd) from ledger_entry e where e.account_id = m.id and e.created_at >= m.until), 0) as entries
			from months m
		)
		insert into closed_month (account_id, month, usage_nano_usd, usage_to_date_nano_usd, closing_nano_usd)
		select s.id, s.month, s.usage, s.to_date, s.entries - s.to_date from sums s on conflict do nothing`;
}

export async function listMonths(statements: Statements, accountId: string) {
	await closeMonths(statements, [accountId]);
	const rows = await statements<{ month: string; state: MonthState }>`
		select to_char(m, 'YYYY-MM') as month, case when c.month is not null then 'closed'
			when m = date_trunc('month', now() at time zone 'UTC') then 'running' else 'over' end as state
		from generate_series(
			date_trunc('month', least((select a.created_at from account a where a.id = ${accountId}),
				(select min(e.created_at) from ledger_entry e where e.account_id = ${accountId}),
				(select min(h.hour) from usage_hour h where h.account_id = ${accountId})) at time zone 'UTC'),
			date_trunc('month', now() at time zone 'UTC'), interval '1 month') m
		left join closed_month c on c.account_id = ${accountId} and c.month = m::date
		order by m desc`;
	return rows.map(({ month, state }) => ({ month, state }));
}

/** Reads a month in one snapshot. Faults invalid_request; not_found for a month before the account existed. */
export async function readStatement(statements: Statements, accountId: string, month: string) {
	const first = parseMonth(month);
	const found = (await listMonths(statements, accountId)).find((known) => known.month === month);
	if (found === undefined)
		throw new ConsoleError("not_found", "There is no statement for this month.", { param: "month" });
	const [row] = await statements<Row>`
		with bounds as (
			select ${first}::timestamp at time zone 'UTC' as since, (${first}::timestamp + interval '1 month') at time zone 'UTC' as until
		), own as (
			select c.* from closed_month c where c.account_id = ${accountId} and c.month = ${first}::date
		), former as (
			select c.* from closed_month c where c.account_id = ${accountId} and c.month = (${first}::date - interval '1 month')::date
		), hours as materialized (
			select h.* from bounds b cross join lateral usage_split(${accountId}, b.since, b.until, true, null) h
		), moved as materialized (
			select e.* from ledger_entry e, bounds b where e.account_id = ${accountId} and e.created_at >= b.since and e.created_at < b.until
		), days as (
			select to_char(date_trunc('day', h.hour, 'UTC') at time zone 'UTC', 'YYYY-MM-DD') as day, h.model, h.project_id as "projectId",
				coalesce((select p.name from project p where p.id = h.project_id), h.project_id) as "projectName",
				sum(h.requests)::text as requests, sum(h.prompt_tokens)::text as "promptTokens",
				sum(h.completion_tokens)::text as "completionTokens", sum(h.charged_nano_usd)::text as "chargedNanoUsd"
			from hours h group by 1, 2, 3 having sum(h.requests) > 0
		), told as (
			select e.id, e.kind, e.amount_nano_usd::text as "amountNanoUsd", e.note, e.source_ref as "sourceRef",
				unix_ms(e.created_at) as "atMs" from moved e order by e.created_at, e.id limit ${ENTRIES_MAX}
		), live as (
			select coalesce((select t.charged_nano_usd from usage_total t where t.account_id = ${accountId}), 0)
				- coalesce((select sum(h.charged_nano_usd) from usage_hour h where h.account_id = ${accountId} and h.hour >= b.since), 0) as before,
				coalesce((select sum(h.charged_nano_usd) from hours h), 0) as usage
			from bounds b
		)
		select (select f.closing_nano_usd from former f) as opening, (select f.usage_to_date_nano_usd from former f) as to_date,
			(select o.usage_nano_usd from own o) as usage, (select o.usage_to_date_nano_usd from own o) as own_to_date,
			(select o.closing_nano_usd from own o) as closing,
			coalesce((select x.limit_nano_usd from budget x where x.id = ${accountId}), 0)
				- coalesce((select sum(e.amount_nano_usd) from ledger_entry e where e.account_id = ${accountId} and e.created_at >= b.since), 0) as entries_before,
			l.before as live_before, l.usage as live_usage, b.until > now() as running,
			promotion_used(${accountId}, coalesce((select o.usage_to_date_nano_usd from own o), l.before + l.usage))
				- promotion_used(${accountId}, coalesce((select f.usage_to_date_nano_usd from former f),
					(select o.usage_to_date_nano_usd - o.usage_nano_usd from own o), l.before)) as promotion_used,
			coalesce((select json_agg(s) from (select e.kind, sum(e.amount_nano_usd)::text as amount, count(*)::int as count from moved e group by 1) s), '[]') as sums,
			coalesce((select json_agg(t order by t."atMs", t.id) from told t), '[]') as entries,
			coalesce((select json_agg(d order by d.day, d.model, d."projectId") from days d), '[]') as days
		from bounds b, live l`;
	assert(row !== undefined, "a month has bounds");
	return statementOf(month, row);
}

type Sums = Readonly<Partial<Record<StatementEntry["kind"], bigint>>>;

function statementOf(month: string, row: Row) {
	const fromMs = Date.parse(`${month}-01T00:00:00Z`);
	const at = new Date(fromMs);
	const isClosed = row.closing !== null;
	const usage = BigInt(row.usage ?? row.live_usage);
	// Usage before this month: as known when this month closed, or as known now if this month is open.
	const usedBefore = row.own_to_date === null ? BigInt(row.live_before) : BigInt(row.own_to_date) - usage;
	const late = row.to_date === null ? 0n : usedBefore - BigInt(row.to_date);
	const moved = row.sums.reduce((sum, { amount }) => sum + BigInt(amount), 0n);
	// Without a closed previous month this month is the account's first, or the previous month has just ended.
	const opening =
		row.opening !== null
			? BigInt(row.opening)
			: isClosed
				? BigInt(row.closing ?? 0) + usage - moved
				: BigInt(row.entries_before) - usedBefore;
	const closing = isClosed ? BigInt(row.closing ?? 0) : opening + moved - usage - late;
	assert(opening + moved - usage - late === closing, `the statement of ${month} does not add up`);
	return {
		month,
		fromMs,
		toMs: Date.UTC(at.getUTCFullYear(), at.getUTCMonth() + 1, 1),
		state: (isClosed ? "closed" : row.running ? "running" : "over") as MonthState,
		openingNanoUsd: opening,
		/** The first ENTRIES_MAX of `entryCount`, oldest first. */
		entries: row.entries.map((entry) => ({ ...entry, amountNanoUsd: BigInt(entry.amountNanoUsd) })),
		entryCount: row.sums.reduce((sum, { count }) => sum + count, 0),
		entrySums: Object.fromEntries(row.sums.map(({ kind, amount }) => [kind, BigInt(amount)])) as Sums,
		/** Sums of the request log as it is now, by day, model and project. */
		usage: row.days.map((day) => ({
			...day,
			requests: BigInt(day.requests),
			promptTokens: BigInt(day.promptTokens),
			completionTokens: BigInt(day.completionTokens),
			chargedNanoUsd: BigInt(day.chargedNanoUsd),
		})),
		usageNanoUsd: usage,
		/** Usage of earlier months that was recorded after they closed; charged in this statement. */
		lateNanoUsd: late,
		/** Usage of this month that was recorded after it closed: in `usage`, but charged in a later statement. */
		laterNanoUsd: BigInt(row.live_usage) - usage,
		closingNanoUsd: closing,
		/** Part of the charged usage, including late usage, that promotional credit paid. */
		promotionUsedNanoUsd: BigInt(row.promotion_used),
	};
}
