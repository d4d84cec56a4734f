import { createStatements } from "../db/statements.ts";

const CONNECTIONS_MAX = 4;
const STATEMENT_DEADLINE_MS = 10_000;
/** The first sums of a large database read every usage row. */
const SUMS_DEADLINE_MS = 10 * 60_000;
const SUMS_LOCK_TIMEOUT_MS = 60_000;
const LIVENESS_CONNECTIONS_MAX = 2;
const LIVENESS_DEADLINE_MS = 2_000;

/** What people wait for, what fences wait for, and sums that nobody waits for. */
export function createConsoleClients(deps: Parameters<typeof createStatements>[0], url: string) {
	return {
		statements: createStatements(deps, {
			url,
			applicationName: "tollgate console",
			connectionsMax: CONNECTIONS_MAX,
			statementDeadlineMs: STATEMENT_DEADLINE_MS,
		}),
		liveness: createStatements(deps, {
			url,
			applicationName: "tollgate console liveness",
			connectionsMax: LIVENESS_CONNECTIONS_MAX,
			statementDeadlineMs: LIVENESS_DEADLINE_MS,
		}),
		sums: createStatements(deps, {
			url,
			applicationName: "tollgate sums",
			connectionsMax: 1,
			statementDeadlineMs: SUMS_DEADLINE_MS,
			// It stands in nobody's way: what it has summed up is not thrown away for a row that is held for a moment.
			lockTimeoutMs: SUMS_LOCK_TIMEOUT_MS,
		}),
	};
}
