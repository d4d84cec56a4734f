import { Fault } from "../../base/fault.ts";
import type { Statements } from "../../db/statements.ts";
import type { NanoUsd } from "../../money/nano-usd.ts";
import { nanoUsdOfColumn } from "../../money/nano-usd.ts";

/** One movement of an account's credit; usage is one row a day. */
export interface LedgerRow {
	readonly id: string;
	readonly kind: "top_up" | "refund" | "adjustment" | "dispute" | "credit_note" | "usage";
	readonly amountNanoUsd: NanoUsd;
	/** The balance after it. */
	readonly runningNanoUsd: NanoUsd;
	readonly note: string;
	readonly atMs: number;
	/** Of a day of usage. */
	readonly requests: number | null;
	/** Place in the list: the `after` of the page that follows. */
	readonly cursor: string;
}

interface Row {
	id: string;
	kind: LedgerRow["kind"];
	amount: string;
	running: string;
	note: string;
	at: Date;
	place: string;
	requests: string | null;
}

/**
 * All movements, newest first, with a running sum: entries of the ledger and, a day in UTC each, usage. A day's usage
 * stands after that day's other movements.
 */
export async function ledgerPage(
	statements: Statements,
	accountId: string,
	page: { asked: number; after: string | null },
): Promise<LedgerRow[]> {
	const [, place = null, id = null] = page.after === null ? [] : (/^(\d{1,17})\.(.{1,100})$/.exec(page.after) ?? []);
	if (page.after !== null && place === null) throw new Fault("invalid_request", "That is no page.", { param: "after" });
	const rows = await statements<Row>`
		with days as (
			select date_trunc('day', hour, 'UTC') as day, sum(charged_nano_usd) as charged, sum(requests) as requests
			from usage_hour where account_id = ${accountId} group by 1
		), movements as (
			select 'usage:' || to_char(day at time zone 'UTC', 'YYYY-MM-DD') as id, 'usage' as kind, -charged as amount, '' as note,
				day as at, day + interval '1 day' as place, requests from days
			union all
			select id, kind, amount_nano_usd, note, created_at, created_at, null from ledger_entry where account_id = ${accountId}
		), placed as (
			select *, (extract(epoch from place) * 1000000)::bigint as micros from movements
		), summed as (
			select *, sum(amount) over (order by micros, id) as running from placed
		)
		select id, kind, amount, running, note, at, micros as place, requests from summed
		where ${place}::bigint is null or (micros, id) < (${place}::bigint, ${id}::text)
		order by micros desc, id desc limit ${page.asked}`;
	return rows.map((row) => ({
		id: row.id,
		kind: row.kind,
		amountNanoUsd: nanoUsdOfColumn(row.amount),
		runningNanoUsd: nanoUsdOfColumn(row.running),
		note: row.note,
		atMs: row.at.getTime(),
		requests: row.requests === null ? null : Number(row.requests),
		cursor: `${row.place}.${row.id}`,
	}));
}
