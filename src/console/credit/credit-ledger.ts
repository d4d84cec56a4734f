import { type Statements, toView } from "../../db/statements.ts";
import type { NanoUsd } from "../../money/nano-usd.ts";
import { cursorRefused } from "../console-error.ts";

/** One movement of an account's credit; usage is one row per day. */
export interface LedgerRow {
	readonly id: string;
	readonly kind: "top_up" | "refund" | "adjustment" | "promotion" | "dispute" | "credit_note" | "usage";
	readonly amountNanoUsd: NanoUsd;
	readonly runningNanoUsd: NanoUsd;
	readonly note: string;
	readonly atMs: number;
	readonly requests: number | null;
	readonly cursor: string;
}

/**
 * Returns movements of credit, newest first: ledger entries, and one row of usage per UTC day. The cursor contains the
 * running balance of the last row, so that the next page need not read newer days.
 */
export async function ledgerPage(
	statements: Statements,
	accountId: string,
	page: { asked: number; after: string | null },
): Promise<LedgerRow[]> {
	const { micros = null, runningNanoUsd = null, id = null } = page.after === null ? {} : parseCursor(page.after);
	const rows = await statements<object>`
		with recursive days as (
			select (select date_trunc('day', max(h.hour), 'UTC') from usage_hour h where h.account_id = ${accountId}
				and h.hour < coalesce(timestamptz 'epoch' + ${micros}::bigint * interval '1 microsecond', 'infinity')) as day, 0 as newer
			union all
			select (select date_trunc('day', max(h.hour), 'UTC') from usage_hour h where h.account_id = ${accountId} and h.hour < d.day), d.newer + 1
			from days d where d.day is not null and d.newer < ${page.asked}::integer
		), movements as (
			select 'usage:' || to_char(d.day at time zone 'UTC', 'YYYY-MM-DD') as id, 'usage' as kind, -u.charged as amount, '' as note,
				d.day as at, d.day + interval '1 day' as place, u.requests
			from days d cross join lateral (
				select sum(h.charged_nano_usd) as charged, sum(h.requests) as requests from usage_hour h
				where h.account_id = ${accountId} and h.hour >= d.day and h.hour < d.day + interval '1 day'
			) u where d.day is not null
			union all
			(select e.id, e.kind, e.amount_nano_usd, e.note, e.created_at, e.created_at, null from ledger_entry e
				where e.account_id = ${accountId}
					and e.created_at <= coalesce(timestamptz 'epoch' + ${micros}::bigint * interval '1 microsecond', 'infinity')
					and (${micros}::bigint is null or ((extract(epoch from e.created_at) * 1000000)::bigint, e.id) < (${micros}::bigint, ${id}::text))
				order by e.created_at desc, e.id desc limit ${page.asked})
		), placed as (
			select *, (extract(epoch from place) * 1000000)::bigint as micros from movements
		), anchor as (
			select coalesce(${runningNanoUsd}::numeric, (select b.limit_nano_usd from budget b where b.id = ${accountId})
				- coalesce((select t.charged_nano_usd from usage_total t where t.account_id = ${accountId}), 0)) as running
		)
		select p.id, p.kind, p.amount as amount_nano_usd, p.rest + p.amount as running_nano_usd, p.note, p.at, p.requests::float8,
			p.micros || '.' || p.rest || '.' || p.id as cursor
		from (select *, a.running - sum(p.amount) over (order by p.micros desc, p.id desc) as rest from placed p, anchor a
			where ${micros}::bigint is null or (p.micros, p.id) < (${micros}::bigint, ${id}::text)) p
		order by p.micros desc, p.id desc limit ${page.asked}`;
	return rows.map(toView<LedgerRow>);
}

function parseCursor(text: string) {
	const [, micros, runningNanoUsd, id] = /^(\d{1,17})\.(-?\d{1,18})\.(.{1,100})$/.exec(text) ?? [];
	if (micros === undefined || runningNanoUsd === undefined || id === undefined) throw cursorRefused();
	return { micros, runningNanoUsd, id };
}
