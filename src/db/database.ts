import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { createListener } from "./listener.ts";
import { createStatements } from "./statements.ts";

export type Database = ReturnType<typeof createDatabase>;

export interface DatabaseOptions {
	url: string;
	applicationName: string;
	/** Of `statements` and of `ledger` each. */
	statementConnectionsMax?: number;
	statementDeadlineMs?: number;
}

/** One for the heartbeat and a second, so that a query that hangs does not delay the next. */
const LIVENESS_CONNECTIONS = 2;
/** A request waits for credit a few seconds. Within them a silent connection is discarded and the next one tried. */
const LEDGER_DEADLINE_MS_MAX = 2_000;

/**
 * The database clients of a gateway, which share no connection, so that none waits for another's statements.
 * Transactions belong to the console's own client (`transactional.ts`).
 */
export function createDatabase(deps: { clock: Clock; log: Log }, options: DatabaseOptions) {
	const { url, applicationName } = options;
	const connectionsMax = options.statementConnectionsMax ?? 4;
	const statementDeadlineMs = options.statementDeadlineMs ?? 5_000;
	const single = (name: string, more: { connectionsMax: number; statementDeadlineMs: number }) =>
		createStatements(deps, { url, applicationName: `${applicationName} ${name}`, ...more });
	const liveness = single("liveness", { connectionsMax: LIVENESS_CONNECTIONS, statementDeadlineMs });
	const ledger = single("ledger", {
		connectionsMax,
		statementDeadlineMs: Math.min(LEDGER_DEADLINE_MS_MAX, statementDeadlineMs),
	});
	const statements = single("statements", { connectionsMax, statementDeadlineMs });
	const listener = createListener(deps, { url, applicationName: `${applicationName} listen` });

	return {
		url,
		/** Heartbeat, control log, fence: everything that an instance's right to admit depends on. */
		liveness,
		/** Credit and keys, which requests need at once: statements that wait for no row. */
		ledger,
		/** All other single repeatable statements, with a deadline. */
		statements,
		listen: listener.listen,
		async end() {
			await Promise.all([liveness.end(), ledger.end(), statements.end(), listener.end()]);
		},
	};
}
