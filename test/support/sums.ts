import { foldUsage, rebuildUsage } from "../../src/console/usage/usage-fold.ts";
import type { Statements } from "../../src/db/statements.ts";
import { waitFor } from "./wait.ts";

/** Folding takes rows older than a minute even while older transactions are open. */
export const FOLD_MS = 70_000;

/**
 * Folds until the sums have everything committed so far. A fold skips rows younger than the oldest transaction of the
 * server, which may belong to another file's database.
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

/** Rebuilds the sums from everything committed so far. */
export async function rebuildAll(statements: Statements): Promise<void> {
	await rebuildUsage(statements);
	await foldAll(statements);
}
