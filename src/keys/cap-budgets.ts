import { periodBudget, spanAt } from "./cap-period.ts";
import type { KeyEntry, KnownPeriod } from "./key-entry.ts";

/**
 * What a request of this key draws on beside its account's budget and its key's own; undefined for nothing. Synchronous and
 * by the moment of its admission: a request belongs to the period that it was reserved in, however long it runs.
 */
export function furtherBudgets(entry: KeyEntry, nowMs: number): readonly string[] | undefined {
	return presentPeriod(entry, nowMs)?.budgets;
}

/** Undefined for a key without a cap, or with one that never begins anew. */
export function presentPeriod(entry: KeyEntry, nowMs: number): KnownPeriod | undefined {
	const { capPeriod } = entry;
	if (capPeriod === "lifetime" || entry.capNanoUsd === null) return undefined;
	const { timeZone } = entry.account;
	const known = entry.period;
	if (known !== null && nowMs >= known.fromMs && nowMs < known.untilMs && known.timeZone === timeZone) return known;
	const { firstDay, fromMs, untilMs } = spanAt(capPeriod, timeZone, nowMs);
	entry.period = { budgets: [periodBudget(entry.id, capPeriod, firstDay)], timeZone, fromMs, untilMs };
	return entry.period;
}
