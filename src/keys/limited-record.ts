import { toView } from "../db/statements.ts";
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
	readonly cap_nano_usd: string | null;
	readonly cap_period: CapPeriod;
	readonly cap_spent: string;
	readonly absent: string;
	readonly spent: string;
	readonly time_zone: string;
	readonly now: Date;
}

/** Converts the row of a key or project; its other columns as `toView` does. */
export function toLimitedRecord<Limited extends LimitedRecord>(row: LimitedRow): Limited {
	const { cap_spent, absent, spent, time_zone, now, ...own } = row;
	const { cap_nano_usd: cap, cap_period: period } = own;
	return {
		...toView<Limited>(own),
		capNanoUsd: cap === null ? null : nanoUsdOfColumn(cap),
		capSpentNanoUsd: displaySumOfColumn(cap_spent),
		absentNanoUsd: nanoUsdOfColumn(absent),
		capRenewsAtMs: period === "lifetime" ? null : periodAt(period, time_zone, now.getTime()).untilMs,
		spentNanoUsd: displaySumOfColumn(spent),
	};
}
