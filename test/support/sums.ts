import { foldUsage, rebuildUsage } from "../../src/console/usage/usage-fold.ts";
import type { Statements } from "../../src/db/statements.ts";
import { waitFor } from "./wait.ts";

/** Longer than a minute: rows of that age are summed even while older transactions are open. */
export const FOLD_MS = 70_000;

/**
 * Sums usage until the sums contain everything committed so far. Rows younger than the oldest open transaction on the
 * server, perhaps another test's, are skipped at first.
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

/** Rebuilds the sums from all committed usage. */
export async function rebuildAllSums(statements: Statements): Promise<void> {
	await rebuildUsage(statements);
	await foldAll(statements);
}
