import type { Statements } from "../../db/statements.ts";
import { toView } from "../../db/view-of.ts";
import type { UsageCounts } from "../../ledger/event.ts";
import type { NanoUsd } from "../../money/nano-usd.ts";
import { ConsoleError } from "../console-error.ts";

/** Usage of one key and one model on a day (UTC). */
export interface UsageDayRow extends Omit<UsageCounts, "units"> {
	readonly accountId: string;
	readonly day: string;
	readonly keyId: string;
	readonly model: string;
	readonly requests: number;
	readonly costNanoUsd: NanoUsd;
	readonly cursor: string;
}

export interface UsageRowFilter {
	readonly from: string;
	readonly to: string;
	readonly accountId: string | null;
	readonly keyId: string | null;
	readonly model: string | null;
}

const DAYS_MAX = 400;
const DAYS_OF_ALL_MAX = 31;
const DAY_MS = 24 * 3_600_000;

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

/** Parses a cursor. Fault invalid_request. */
function placeOf(cursor: string): readonly [string, string, string, string] {
	try {
		const place: unknown = JSON.parse(Buffer.from(cursor, "base64url").toString());
		if (Array.isArray(place) && place.length === 4 && place.every((part) => typeof part === "string"))
			return place as [string, string, string, string];
	} catch {
		// An undecodable cursor gets the fault below.
	}
	throw new ConsoleError("invalid_request", "`after` must be the `next` value of the previous page.", {
		param: "after",
	});
}
