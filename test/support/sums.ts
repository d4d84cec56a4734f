import { foldUsage, rebuildUsage } from "../../src/console/usage/usage-fold.ts";
import type { Statements } from "../../src/db/statements.ts";
import { waitFor } from "./wait.ts";

/** A fold takes rows that are older than a minute whatever else is open. */
export const FOLD_MS = 70_000;

/**
 * Folds until all that is committed by now is in the sums. A fold leaves what is younger than the oldest transaction of
 * the whole server to the next one, and the databases of other test files are on the same server.
 */
export async function foldAll(statements: Statements): Promise<void> {
	const [now] = await statements<{ xid: string }>`select pg_current_xact_id()::text as xid`;
	await waitFor(
		async () => {
			await foldUsage(statements);
			const [cursor] = await statements<{ past: boolean }>`
				select horizon > ${now?.xid ?? ""}::bigint as past from usage_cursor`;
			return cursor?.past === true;
		},
		"transactions of the whole server to end",
		FOLD_MS,
	);
}

/** Throws the sums away and makes them anew, of all that is committed by now. */
export async function rebuildAll(statements: Statements): Promise<void> {
	await rebuildUsage(statements);
	await foldAll(statements);
}
