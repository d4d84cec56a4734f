import type { RequestLimits } from "../limits/key-limits.ts";
import { displaySumOfColumn, type NanoUsd, nanoUsdOfColumn } from "../money/nano-usd.ts";
import { type CapPeriod, periodAt } from "./cap-period.ts";

/** Limits of a key or project, and how much of the cap is used. */
export interface LimitedRecord extends RequestLimits {
	readonly capNanoUsd: NanoUsd | null;
	readonly capPeriod: CapPeriod;
	/** Spending that counts against the cap: of the current period if the cap renews, otherwise all spending. */
	readonly capSpentNanoUsd: NanoUsd;
	/** Part of the cap that dead instances hold until their journals are replayed, in the current period. */
	readonly absentNanoUsd: NanoUsd;
	/** Time of the cap's next renewal, in Unix milliseconds; null: never. */
	readonly capRenewsAtMs: number | null;
	/** Total spending in Postgres, without running requests. A project's includes keys that moved to another project. */
	readonly spentNanoUsd: NanoUsd;
	/** Ids of allowed models; empty: all. */
	readonly models: readonly string[];
}

/** Columns of a query, with the account's time zone and the database's time. */
export interface LimitedRow {
	cap_nano_usd: string | null;
	cap_period: CapPeriod;
	cap_spent: string;
	absent: string;
	spent: string;
	time_zone: string;
	now: Date;
	models: readonly string[];
	requests_per_minute: number | null;
	concurrency_max: number | null;
	tokens_per_minute: number | null;
}

export const toLimitedRecord = (row: LimitedRow): LimitedRecord => ({
	capNanoUsd: row.cap_nano_usd === null ? null : nanoUsdOfColumn(row.cap_nano_usd),
	capPeriod: row.cap_period,
	capSpentNanoUsd: displaySumOfColumn(row.cap_spent),
	absentNanoUsd: nanoUsdOfColumn(row.absent),
	capRenewsAtMs:
		row.cap_period === "lifetime" ? null : periodAt(row.cap_period, row.time_zone, row.now.getTime()).untilMs,
	spentNanoUsd: displaySumOfColumn(row.spent),
	models: row.models,
	requestsPerMinute: row.requests_per_minute,
	concurrencyMax: row.concurrency_max,
	tokensPerMinute: row.tokens_per_minute,
});
