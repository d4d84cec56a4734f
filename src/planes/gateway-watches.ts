import type { Cleanup } from "../base/cleanup.ts";
import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { readDurability } from "../db/durability.ts";
import type { Statements } from "../db/statements.ts";
import { createBooksHistory } from "../ledger/books-history.ts";
import { startBooksWatch } from "../ledger/books-watch.ts";
import { startDurabilityWatch } from "../ledger/durability-watch.ts";
import { countRefusedSettlements } from "../ledger/removal.ts";
import { startCountWatch } from "../ops/count-watch.ts";
import { countOpenFindings } from "../ops/payment-findings.ts";

/** What a gateway looks at in the database from time to time, to tell it in its metrics and its health. */
export function startGatewayWatches(deps: { statements: Statements; clock: Clock; log: Log; cleanup: Cleanup }) {
	const { statements, clock, log, cleanup } = deps;
	const books = startBooksWatch({ history: createBooksHistory(statements), clock, log });
	cleanup.add(() => books.stop());
	const durability = startDurabilityWatch({ read: () => readDurability(statements), clock, log });
	cleanup.add(() => durability.stop());
	const watch = (what: string, count: () => Promise<number>) => {
		const watching = startCountWatch({ what, count, clock, log });
		cleanup.add(() => watching.stop());
		return watching;
	};
	const payments = watch("payments in question", () => countOpenFindings(statements));
	const refused = watch("refused settlements", () => countRefusedSettlements(statements));
	return { books, durability, payments, refused };
}
