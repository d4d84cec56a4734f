import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { createListener } from "./listener.ts";
import { createServerHistory } from "./server-history.ts";
import { createStatements, type StatementsOptions } from "./statements.ts";

export type Database = ReturnType<typeof createDatabase>;

export interface DatabaseOptions {
	url: string;
	applicationName: string;
	/** Connections of `statements`, and of `ledger`. */
	statementConnectionsMax?: number;
	statementDeadlineMs?: number;
	/** Where the highest timelines seen are kept; none: in memory. */
	dataDir?: string;
}

/**
 * Sessions that never end would hide that the address leads to another server. So `liveness` opens new ones: what
 * acts on the former server notices within this time.
 */
export const LIVENESS_LIFE_MS = 5_000;
/** One connection for the heartbeat and one more, so that a query that hangs does not delay the next. */
const LIVENESS_CONNECTIONS = 2;
/** A request waits a few seconds for credit, in which a silent connection can be replaced and the next one tried. */
const LEDGER_DEADLINE_MS_MAX = 2_000;

/**
 * Database clients of a gateway. They share no connection, so that none waits for another's statements. Transactions
 * use the console's own client (`transactional.ts`).
 */
export function createDatabase(deps: { clock: Clock; log: Log }, options: DatabaseOptions) {
	const { url, applicationName } = options;
	const connectionsMax = options.statementConnectionsMax ?? 4;
	const statementDeadlineMs = options.statementDeadlineMs ?? 5_000;
	const history = createServerHistory(deps, options.dataDir);
	const single = (name: string, more: Pick<StatementsOptions, "connectionsMax" | "statementDeadlineMs" | "lifeMs">) =>
		createStatements(deps, { url, applicationName: `${applicationName} ${name}`, history, ...more });
	const liveness = single("liveness", {
		connectionsMax: LIVENESS_CONNECTIONS,
		statementDeadlineMs,
		lifeMs: LIVENESS_LIFE_MS,
	});
	const ledger = single("ledger", {
		connectionsMax,
		statementDeadlineMs: Math.min(LEDGER_DEADLINE_MS_MAX, statementDeadlineMs),
	});
	const statements = single("statements", { connectionsMax, statementDeadlineMs });
	const listener = createListener(deps, { url, applicationName: `${applicationName} listen`, history });

	return {
		url,
		/** Which servers answered; all clients compare theirs. */
		history,
		/** For heartbeat, control log and fence, on which an instance's right to admit depends. */
		liveness,
		/** For credit and keys, which requests need at once. Its statements wait for no row. */
		ledger,
		/** For all other repeatable statements. */
		statements,
		listen: listener.listen,
		async end() {
			await Promise.all([liveness.end(), ledger.end(), statements.end(), listener.end()]);
		},
	};
}
