import type { Statements } from "../db/statements.ts";

/** One invariant of the books and how many rows break it. */
export interface Check {
	readonly name: string;
	readonly ok: boolean;
	readonly detail: string;
}

export interface Reconciliation {
	readonly ok: boolean;
	readonly checks: readonly Check[];
}

interface CheckRow {
	name: string;
	broken: string;
	example: string | null;
}

/**
 * Checks the books as they stand in Postgres: properties of the data, whatever code wrote it, in one snapshot, so that
 * running traffic does not disturb it. Sealed days count by their sums (`seals.ts` reads their rows again).
 */
export async function reconcile(statements: Statements): Promise<Reconciliation> {
	const rows = await statements<CheckRow>`select name, broken, example from books_check()`;
	const checks = rows.map(({ name, broken, example }) => ({
		name,
		ok: Number(broken) === 0,
		detail: Number(broken) === 0 ? "holds" : `broken ${broken} times, first at ${example}`,
	}));
	return { ok: checks.every((check) => check.ok), checks };
}
