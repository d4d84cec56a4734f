import type { Clock } from "../../base/clock.ts";
import type { AppendedEntry } from "../../cluster/control-log.ts";
import { waitEverywhere } from "../../cluster/wait-everywhere.ts";
import type { Statements } from "../../db/statements.ts";
import type { Connection } from "../../gateway/connection.ts";
import { IDLE_TIMEOUT_S } from "../../gateway/connection.ts";
import type { ConsoleFigures } from "../console-figures.ts";

/** What a page says of a change: since when no instance acts by anything older. */
export interface Fence {
	readonly effective: boolean;
	readonly elapsedMs: number;
	readonly atMs: number;
	/** Where it is not effective yet: when it is at the latest. */
	readonly effectiveByMs: number | null;
	readonly pendingInstances: number;
	/** False: Postgres went away during the wait, and nobody knows how far the change has spread. */
	readonly known: boolean;
}

/** The usual lease is half a minute. A page does not wait longer than this; the change takes effect all the same. */
const DEADLINE_MS = 45_000;
const SILENCE_S = 60;

/** Waits until every live instance acts by the control entry, while the page's connection is silent. */
export async function fenceOf(
	deps: { liveness: Statements; clock: Clock; figures: Pick<ConsoleFigures, "revoked"> },
	connection: Connection,
	entry: AppendedEntry,
): Promise<Fence> {
	connection.setIdleTimeout(SILENCE_S);
	try {
		const { pending, ...everywhere } = await waitEverywhere(deps, entry, DEADLINE_MS);
		deps.figures.revoked(everywhere.elapsedMs, everywhere.effective);
		return { ...everywhere, atMs: deps.clock.wallMs(), pendingInstances: pending.length };
	} finally {
		connection.setIdleTimeout(IDLE_TIMEOUT_S);
	}
}
