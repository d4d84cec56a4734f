import { type KnownPeriod, periodAt, periodBudget } from "./cap-period.ts";
import type { KeyEntry, ProjectEntry } from "./key-entry.ts";

/**
 * Further budgets of a request at its admission. The project's own comes first, on which `budgets_project` in
 * `db/functions/projects.sql` relies; then those of periods.
 */
export function furtherBudgets(entry: KeyEntry, nowMs: number): readonly string[] | undefined {
	const own = presentPeriod(entry, nowMs)?.budgets;
	const { project } = entry;
	if (project === null) return own;
	const ofProject = projectPeriod(entry, project, nowMs)?.budgets;
	return [project.id, ...(ofProject ?? []), ...(own ?? [])];
}

/** Present period of a key's cap; undefined without a cap, or with one that never renews. */
export function presentPeriod(entry: KeyEntry, nowMs: number): KnownPeriod | undefined {
	return periodOf(entry, entry.account.timeZone, nowMs);
}

/** Present period of the project's cap; undefined as for keys. */
export function projectPeriod({ account }: KeyEntry, project: ProjectEntry, nowMs: number): KnownPeriod | undefined {
	return periodOf(project, account.timeZone, nowMs);
}

/** For this long after its start, a period may not yet have started by the database's clock. */
const BEGUN_MS_MAX = 2 * 3_600_000;
/** The previous period continues for this long before the new one is tried again. */
const FORMER_MS = 60_000;

/**
 * The database grants nothing for a period that has not started by its clock: then the previous period continues. False
 * if the budget belongs to no period of the key, or to one that started long ago.
 */
export function continueInPrevious(entry: KeyEntry, budget: string, nowMs: number): boolean {
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

function periodOf(capped: KeyEntry | ProjectEntry, timeZone: string, nowMs: number): KnownPeriod | undefined {
	const { capPeriod } = capped;
	if (capPeriod === "lifetime" || capped.capNanoUsd === null) return undefined;
	const known = capped.period;
	if (known !== null && nowMs >= known.fromMs && nowMs < known.untilMs && known.timeZone === timeZone) return known;
	const { firstDay, fromMs, untilMs } = periodAt(capPeriod, timeZone, nowMs);
	capped.period = { budgets: [periodBudget(capped.id, capPeriod, firstDay)], timeZone, fromMs, untilMs };
	return capped.period;
}
