import { assert } from "../../base/assert.ts";
import type { Clock } from "../../base/clock.ts";
import { BATCH_ROWS, deleteInBatches } from "../../db/delete-in-batches.ts";
import type { Statements } from "../../db/statements.ts";
import { type NanoUsd, nanoUsdOfColumn } from "../../money/nano-usd.ts";

export interface Claim {
	/** Id of the claim: a hex digest from which neither the API key nor the header can be derived. */
	readonly id: string;
	readonly accountId: string;
	/** Digest of path and body. A repeated request must have the same digest, or it is refused. */
	readonly proof: string;
	/** UUID of the first attempt; its last byte is 0. Attempts at a route's next models have the next UUIDs. */
	readonly requestUuid: string;
}

export type ClaimOutcome =
	/** The caller may run the request, and must end the claim with `keep` or `release`. */
	| { readonly state: "new" }
	/** The first request is still running, or its instance died and the charge is not known yet. */
	| { readonly state: "running" }
	| { readonly state: "mismatch" }
	| { readonly state: "answered"; readonly sealed: Uint8Array }
	/** The first request was charged, but its answer was lost with its instance (`lost`) or not kept (`unkept`). */
	| { readonly state: "lost" | "unkept"; readonly requestUuid: string; readonly charged: NanoUsd };

/** Limits of kept answers. An account's newer answers replace its oldest; above the total no new answer is kept. */
const DEFAULT_LIMITS = { keepS: 24 * 3_600, accountBytesMax: 64 * 1024 * 1024, totalBytesMax: 4 * 1024 * 1024 * 1024 };

interface ClaimRow {
	outcome: ClaimOutcome["state"];
	request: string;
	charged: string | null;
	sealed: Uint8Array | null;
}

/** Store of the idempotency keys of all instances. Each method is one SQL statement, which may be repeated. */
export type Claims = ReturnType<typeof createPgClaims>;

export function createPgClaims(
	deps: {
		statements: Statements;
		clock: Pick<Clock, "wallMs">;
		instanceLease: { readonly instanceId: string; present(): { readonly epoch: number } | undefined };
	},
	limits = DEFAULT_LIMITS,
) {
	const { statements, instanceLease, clock } = deps;
	return {
		async claim({ id, accountId, proof, requestUuid }: Claim): Promise<ClaimOutcome> {
			const epoch = instanceLease.present()?.epoch;
			assert(epoch !== undefined, "claims are made by an instance that is live");
			const [row] = await statements<ClaimRow>`
				select outcome, request, charged, sealed
				from idempotency_claim(${id}, ${accountId}, ${proof}, ${requestUuid}::uuid, ${instanceLease.instanceId}, ${epoch}, ${limits.keepS},
					${clock.wallMs()})`;
			assert(row !== undefined, "a claim has an outcome");
			const { outcome } = row;
			if (outcome === "answered") {
				assert(row.sealed !== null, "an answer that is kept is there");
				return { state: outcome, sealed: row.sealed };
			}
			if (outcome === "lost" || outcome === "unkept")
				return { state: outcome, requestUuid: row.request, charged: nanoUsdOfColumn(row.charged ?? 0) };
			return { state: outcome };
		},
		/** Stores the encrypted answer. null: the answer is not kept. */
		async keep({ id, requestUuid }: Claim, sealed: Uint8Array | null): Promise<void> {
			await statements`
				select idempotency_keep(${id}, ${requestUuid}::uuid, ${sealed}::bytea, ${limits.accountBytesMax}::bigint, ${limits.totalBytesMax}::bigint)`;
		},
		/** Deletes the claim of a failed request, so that a repeated request runs. */
		async release({ id, requestUuid }: Claim): Promise<void> {
			await statements`
				delete from idempotency_claim k
				where k.id = ${id} and k.request_id = ${requestUuid}::uuid and k.state = 'running'`;
		},
	};
}

/** Deletes claims that have expired by the clock of Postgres and by that of this process. */
export async function forgetOldClaims(statements: Statements, nowMs: number): Promise<void> {
	await deleteInBatches(async () => {
		const [row] = await statements<{
			rows: number;
		}>`select idempotency_forget(${BATCH_ROWS}::integer, ${nowMs}) as rows`;
		return row?.rows ?? 0;
	});
}
