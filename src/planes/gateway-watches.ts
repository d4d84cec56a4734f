import type { Cleanup } from "../base/cleanup.ts";
import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { startWatch } from "../base/watch.ts";
import { readDurability, startDurabilityWatch } from "../db/durability.ts";
import type { Statements } from "../db/statements.ts";
import { lastBooksCheck } from "../ledger/books-history.ts";
import { countRefusedSettlements } from "../ledger/removal.ts";
import { countOpenFindings } from "../ops/payment-findings.ts";

/** The latest check of the books. */
export interface BooksSeen {
	readonly ok: boolean;
	/** Its age: by the database's clock when it was read, and by this process's clock since. */
	ageMs(): number;
}

const FIRST_COUNT_MS = 1_000;
const FIRST_LOOK_AT_BOOKS_MS = 5_000;

/** Periodic database reads for a gateway's metrics and health. */
export function startGatewayWatches(deps: { statements: Statements; clock: Clock; log: Log; cleanup: Cleanup }) {
	const { statements, clock, log, cleanup } = deps;
	const durability = startDurabilityWatch({ read: () => readDurability(statements), clock, log });
	cleanup.add(() => durability.stop());
	function watch<T>(what: string, firstLookMs: number, look: () => Promise<T>) {
		const watching = startWatch({ look, clock, log }, { what, firstLookMs });
		cleanup.add(() => watching.stop());
		return watching;
	}
	// A console's process checks the books; this reads its result.
	const books = watch("the books", FIRST_LOOK_AT_BOOKS_MS, async (): Promise<BooksSeen | undefined> => {
		const check = await lastBooksCheck(statements);
		if (check === undefined) return undefined;
		const checkedMs = clock.monotonicMs() - check.ageMs;
		return { ok: check.ok, ageMs: () => clock.monotonicMs() - checkedMs };
	});
	const payments = watch("payments in question", FIRST_COUNT_MS, () => countOpenFindings(statements));
	const refused = watch("refused settlements", FIRST_COUNT_MS, () => countRefusedSettlements(statements));
	return { books, durability, payments, refused };
}
