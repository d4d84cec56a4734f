import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { createListener } from "./listener.ts";
import { createServerHistory } from "./server-history.ts";
import { createStatements, type StatementsOptions } from "./statements.ts";

export type Database = ReturnType<typeof createDatabase>;

export interface DatabaseOptions {
	url: string;
	applicationName: string;
	/** Connections of the client `statements`, and of the client `ledger`. */
	statementConnectionsMax?: number;
	statementDeadlineMs?: number;
	/** Folder with the highest database timelines seen. Without it they are kept only in memory. */
	dataDir?: string;
}

/**
 * Age in milliseconds at which a `liveness` connection is replaced. A session that never ends would hide that the
 * address now leads to another server.
 */
export const LIVENESS_CONNECTION_LIFE_MS = 5_000;
/** One connection for the heartbeat and one more, so that a hanging query does not delay the next heartbeat. */
const LIVENESS_CONNECTIONS = 2;
/** Deadline of the ledger's statements: short, because a request waits only a few seconds for credit. */
const LEDGER_DEADLINE_MS_MAX = 2_000;

/**
 * Database clients of a gateway. They share no connections, so that no client waits for another client's statements.
 * Transactions use the console's client (`transactional.ts`).
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
		lifeMs: LIVENESS_CONNECTION_LIFE_MS,
	});
	const ledger = single("ledger", {
		connectionsMax,
		statementDeadlineMs: Math.min(LEDGER_DEADLINE_MS_MAX, statementDeadlineMs),
	});
	const statements = single("statements", { connectionsMax, statementDeadlineMs });
	const listener = createListener(deps, { url, applicationName: `${applicationName} listen`, history });

	return {
		url,
		/** Records which database servers have answered; every client compares its server with this record. */
		history,
		/** For heartbeat, control log and fence, which decide whether the instance may admit requests. */
		liveness,
		/** For credit and keys, which requests wait for. Its statements never wait for locked rows. */
		ledger,
		/** For all other statements, which must be repeatable. */
		statements,
		listen: listener.listen,
		async end() {
			await Promise.all([liveness.end(), ledger.end(), statements.end(), listener.end()]);
		},
	};
}
