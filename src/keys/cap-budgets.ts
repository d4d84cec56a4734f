import { type KnownPeriod, periodBudget, spanAt } from "./cap-period.ts";
import type { KeyEntry } from "./key-entry.ts";
import type { ProjectEntry } from "./project-entry.ts";

/**
 * What a request of this key draws on beside its account's budget and its key's own; undefined for nothing. Synchronous and
 * by the moment of its admission: a request belongs to the period that it was reserved in, however long it runs. A
 * project's own comes first (`budgets_project` in `db/functions/projects.sql` goes by it), then the periods'.
 */
export function furtherBudgets(entry: KeyEntry, nowMs: number): readonly string[] | undefined {
	const own = presentPeriod(entry, nowMs)?.budgets;
	const { project } = entry;
	if (project === null) return own;
	const ofProject = projectPeriod(entry, project, nowMs)?.budgets;
	return [project.id, ...(ofProject ?? []), ...(own ?? [])];
}

/** Undefined for a key without a cap, or with one that never begins anew. */
export function presentPeriod(entry: KeyEntry, nowMs: number): KnownPeriod | undefined {
	return periodOf(entry, entry.account.timeZone, nowMs);
}

/** The same of the project's cap. */
export function projectPeriod({ account }: KeyEntry, project: ProjectEntry, nowMs: number): KnownPeriod | undefined {
	return periodOf(project, account.timeZone, nowMs);
}

function periodOf(capped: KeyEntry | ProjectEntry, timeZone: string, nowMs: number): KnownPeriod | undefined {
	const { capPeriod } = capped;
	if (capPeriod === "lifetime" || capped.capNanoUsd === null) return undefined;
	const known = capped.period;
	if (known !== null && nowMs >= known.fromMs && nowMs < known.untilMs && known.timeZone === timeZone) return known;
	const { firstDay, fromMs, untilMs } = spanAt(capPeriod, timeZone, nowMs);
	capped.period = { budgets: [periodBudget(capped.id, capPeriod, firstDay)], timeZone, fromMs, untilMs };
	return capped.period;
}
