import type { Clock } from "../../base/clock.ts";
import type { AppendedEntry } from "../../cluster/control-log.ts";
import { waitForAllInstances } from "../../cluster/wait-for-all-instances.ts";
import type { Statements } from "../../db/statements.ts";
import { type Connection, IDLE_TIMEOUT_S } from "../../gateway/connection.ts";
import { type AuditNote, recordAuditOutcome } from "../../ops/audit.ts";
import type { AuditAction } from "../../ops/audit-action.ts";
import type { ConsoleFigures } from "../console-figures.ts";

export interface AuditContext {
	readonly connection: Connection;
	noted(action: AuditAction, detail?: Record<string, unknown>): AuditNote;
}

/** State of a change: it is effective once no instance acts on the old state. */
export interface Fence {
	readonly effective: boolean;
	readonly elapsedMs: number;
	readonly atMs: number;
	/** Latest time at which the change becomes effective; null if it is effective already. */
	readonly effectiveByMs: number | null;
	readonly pendingInstances: number;
	readonly known: boolean;
}

/** Waits until every live instance has applied the control entry. `act` is the audit entry that records the result. */
export type WaitForFence = (
	actor: Pick<AuditContext, "connection">,
	entry: AppendedEntry,
	act?: AuditNote | null,
) => Promise<Fence>;

/** Longest wait of a request; a lease usually lasts 30 s. A slower change still takes effect after the response. */
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
			if (act !== null) await recordAuditOutcome(deps.statements, act, fence);
			return fence;
		} finally {
			connection.setIdleTimeout(IDLE_TIMEOUT_S);
		}
	};
}
