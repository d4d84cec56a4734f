import { type NanoUsd, nanoUsdOfColumn, sumOfColumn } from "../money/nano-usd.ts";
import { type CapPeriod, spanAt } from "./cap-period.ts";

/** Limits of a key or a project, and the used part of its cap. */
export interface LimitedRecord {
	readonly capNanoUsd: NanoUsd | null;
	readonly capPeriod: CapPeriod;
	/** Counts against the cap: spent in the present period, or ever if the cap never renews. */
	readonly capSpentNanoUsd: NanoUsd;
	/** Held of the cap by ended instances, in the present period, until their journals are replayed. */
	readonly absentNanoUsd: NanoUsd;
	/** When the cap renews in the account's time zone; null: never. */
	readonly capRenewsAtMs: number | null;
	/** Spent ever, according to Postgres, without running requests; a project's includes keys that have moved away. */
	readonly spentNanoUsd: NanoUsd;
	/** Empty: all. */
	readonly models: readonly string[];
	/** Of a project: for all its keys together. */
	readonly requestsPerMinute: number | null;
	readonly concurrencyMax: number | null;
}

/** The selected columns, with the account's time zone and the database's time. */
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
}

export function limitedOf(row: LimitedRow): LimitedRecord {
	return {
		capNanoUsd: row.cap_nano_usd === null ? null : nanoUsdOfColumn(row.cap_nano_usd),
		capPeriod: row.cap_period,
		capSpentNanoUsd: sumOfColumn(row.cap_spent),
		absentNanoUsd: nanoUsdOfColumn(row.absent),
		capRenewsAtMs:
			row.cap_period === "lifetime" ? null : spanAt(row.cap_period, row.time_zone, row.now.getTime()).untilMs,
		spentNanoUsd: sumOfColumn(row.spent),
		models: row.models,
		requestsPerMinute: row.requests_per_minute,
		concurrencyMax: row.concurrency_max,
	};
}
