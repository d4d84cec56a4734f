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

/** A period that began no longer ago may not have begun by the database. */
const BEGUN_MS_MAX = 2 * 3_600_000;
/** The period before goes on for so long, then the new one is asked for again. */
const FORMER_MS = 60_000;

/**
 * The database gives out nothing of a period that has just begun here: by its clock, or by its tables of time zones, which may be
 * older than ours, it has not begun. Its word counts, and the period before goes on. False where it is another one that is drawn on,
 * or one that began long ago.
 */
export function goOnInFormer(entry: KeyEntry, budget: string, nowMs: number): boolean {
	for (const capped of [entry, ...(entry.project === null ? [] : [entry.project])]) {
		const { period, capPeriod } = capped;
		if (period === null || capPeriod === "lifetime" || !period.budgets.includes(budget)) continue;
		if (nowMs - period.fromMs > BEGUN_MS_MAX) return false;
		const { firstDay, fromMs } = spanAt(capPeriod, period.timeZone, period.fromMs - 1);
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
	const { firstDay, fromMs, untilMs } = spanAt(capPeriod, timeZone, nowMs);
	capped.period = { budgets: [periodBudget(capped.id, capPeriod, firstDay)], timeZone, fromMs, untilMs };
	return capped.period;
}
