import { inEnglish, type Text } from "../base/translate.ts";
import type { Statements } from "../db/statements.ts";

/** One invariant of the books and how many rows break it. */
export interface Check {
	readonly name: string;
	readonly ok: boolean;
	readonly detail: string;
	/** The same as `detail`; runs of earlier versions have none. */
	readonly text?: Text;
}

export interface Reconciliation {
	readonly ok: boolean;
	readonly checks: readonly Check[];
}

const HOLDS: Text = { id: "holds" };

interface CheckRow {
	name: string;
	broken: string;
	example: string | null;
}

/**
 * Checks the books in Postgres: properties of the data, whatever code wrote it, in one snapshot that running traffic
 * does not disturb. Sealed days count by their sums (`seals.ts` reads their rows again).
 */
export async function reconcile(statements: Statements): Promise<Reconciliation> {
	const rows = await statements<CheckRow>`select name, broken, example from books_check()`;
	const checks = rows.map(({ name, broken: count, example }) => {
		if (Number(count) === 0) return { name, ok: true, detail: HOLDS.id, text: HOLDS };
		const [place = "", problem] = (example ?? "").split("\n");
		const text: Text =
			problem === undefined
				? { id: "broken {count} times, first at {place}", values: { count, place } }
				: { id: "broken {count} times, first at {place}: {problem}", values: { count, place, problem } };
		return { name, ok: false, detail: inEnglish(text), text };
	});
	return { ok: checks.every((check) => check.ok), checks };
}
