import { type CurrentPeriod, periodAt, periodBudget } from "./cap-period.ts";
import type { KeyEntry, ProjectEntry } from "./key-entry.ts";

/**
 * Budgets of a request in addition to its account's and key's. The project's lifetime budget comes first
 * (`budgets_project` in `db/functions/projects.sql` relies on that), then those of periods.
 */
export function extraBudgets(entry: KeyEntry, nowMs: number): readonly string[] | undefined {
	const own = keyPeriod(entry, nowMs)?.budgets;
	const { project } = entry;
	if (project === null) return own;
	const ofProject = projectPeriod(entry, project, nowMs)?.budgets;
	return [project.id, ...(ofProject ?? []), ...(own ?? [])];
}

/** Current period of a key's cap; undefined without a cap or if the cap does not renew. */
export function keyPeriod(entry: KeyEntry, nowMs: number): CurrentPeriod | undefined {
	return periodOf(entry, entry.account.timeZone, nowMs);
}

/** Current period of a project's cap; undefined without a cap or if the cap does not renew. */
export function projectPeriod({ account }: KeyEntry, project: ProjectEntry, nowMs: number): CurrentPeriod | undefined {
	return periodOf(project, account.timeZone, nowMs);
}

/** Milliseconds after a period's start by this clock in which it may not have started by the database's clock. */
const BEGUN_MS_MAX = 2 * 3_600_000;
/** Milliseconds for which the previous period is used before the current one is tried again. */
const FORMER_MS = 60_000;

/**
 * Makes the previous period the current one again, because the database grants nothing for a period that has not
 * started by its own clock. False if the budget belongs to no period of the key, or to one that started long ago.
 */
export function keepPreviousPeriod(entry: KeyEntry, budget: string, nowMs: number): boolean {
	for (const capped of [entry, ...(entry.project === null ? [] : [entry.project])]) {
		const { period, capPeriod } = capped;
		if (period === null || capPeriod === "lifetime" || !period.budgets.includes(budget)) continue;
		if (nowMs - period.fromMs > BEGUN_MS_MAX) return false;
		const { firstDay, fromMs } = periodAt(capPeriod, period.timeZone, period.fromMs - 1);
		const budgets = [periodBudget(capped.id, capPeriod, firstDay)];
		capped.period = { budgets, timeZone: period.timeZone, fromMs, untilMs: nowMs + FORMER_MS };
		return true;
	}
	return false;
}

function periodOf(capped: KeyEntry | ProjectEntry, timeZone: string, nowMs: number): CurrentPeriod | undefined {
	const { capPeriod } = capped;
	if (capPeriod === "lifetime" || capped.capNanoUsd === null) return undefined;
	const known = capped.period;
	if (known !== null && nowMs >= known.fromMs && nowMs < known.untilMs && known.timeZone === timeZone) return known;
	const { firstDay, fromMs, untilMs } = periodAt(capPeriod, timeZone, nowMs);
	capped.period = { budgets: [periodBudget(capped.id, capPeriod, firstDay)], timeZone, fromMs, untilMs };
	return capped.period;
}
