import type { NanoUsd } from "../money/nano-usd.ts";
import { nanoUsdOfColumn, sumOfColumn } from "../money/nano-usd.ts";
import { type CapPeriod, spanAt } from "./cap-period.ts";

/** What limits a key or a project, and what of its cap is used. */
export interface LimitedRecord {
	readonly capNanoUsd: NanoUsd | null;
	readonly capPeriod: CapPeriod;
	/** What counts against the cap: spent in the present period; where the cap never begins anew, ever. */
	readonly capSpentNanoUsd: NanoUsd;
	/** What instances that are gone hold of the cap, in the present period, until their journals are read. */
	readonly absentNanoUsd: NanoUsd;
	/** When the cap begins anew by the account's time zone; null: never. */
	readonly capRenewsAtMs: number | null;
	/** What it has ever spent, a project by keys while they were its own, as far as Postgres knows; running requests come on top. */
	readonly spentNanoUsd: NanoUsd;
	/** Empty: all. */
	readonly models: readonly string[];
	/** Of a project: of all its keys together. */
	readonly requestsPerMinute: number | null;
	readonly concurrencyMax: number | null;
}

/** As it is selected, with its account's time zone and the database's time. */
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
