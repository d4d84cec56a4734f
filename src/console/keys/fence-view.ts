import type { Clock } from "../../base/clock.ts";
import type { AppendedEntry } from "../../cluster/control-log.ts";
import { waitForAllInstances } from "../../cluster/wait-for-all-instances.ts";
import type { Statements } from "../../db/statements.ts";
import type { Connection } from "../../gateway/connection.ts";
import { IDLE_TIMEOUT_S } from "../../gateway/connection.ts";
import { type Noted, noteOutcome } from "../../ops/audit.ts";
import type { AuditAction } from "../../ops/audit-action.ts";
import type { ConsoleFigures } from "../console-figures.ts";

/** The member, operator or management key that changes something, for the audit log, and the connection that waits. */
export interface Actor {
	readonly connection: Connection;
	/** An entry of the audit log, which the statement that makes the change writes. */
	noted(action: AuditAction, detail?: Record<string, unknown>): Noted;
}

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

/**
 * Waits until every live instance acts by the control entry, while the actor's connection is silent. With `act` the outcome
 * is written beside that entry of the audit log.
 */
export type WaitForFence = (
	actor: Pick<Actor, "connection">,
	entry: AppendedEntry,
	act?: Noted | null,
) => Promise<Fence>;

/** The usual lease is half a minute. A page does not wait longer than this; the change takes effect all the same. */
const DEADLINE_MS = 45_000;
const SILENCE_S = 60;

export function createFence(deps: {
	statements: Statements;
	liveness: Statements;
	clock: Clock;
	figures: Pick<ConsoleFigures, "revoked">;
}): WaitForFence {
	return async ({ connection }, entry, act = null) => {
		connection.setIdleTimeout(SILENCE_S);
		try {
			const { pending, ...everywhere } = await waitForAllInstances(deps, entry, DEADLINE_MS);
			deps.figures.revoked(everywhere.elapsedMs, everywhere.effective);
			const fence = { ...everywhere, atMs: deps.clock.wallMs(), pendingInstances: pending.length };
			if (act !== null) await noteOutcome(deps.statements, act, fence);
			return fence;
		} finally {
			connection.setIdleTimeout(IDLE_TIMEOUT_S);
		}
	};
}
