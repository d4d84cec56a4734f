import { assert } from "../../base/assert.ts";
import type { Clock } from "../../base/clock.ts";
import { createFairPool } from "../../base/fair-pool.ts";
import type { Log } from "../../base/log.ts";
import { SlotMap } from "../../base/slot-map.ts";
import { SlotPool } from "../../base/slot-pool.ts";
import { BATCH_ROWS, deleteInBatches, type Statements } from "../../db/statements.ts";
import type { DiskRoom } from "../../files/disk-room.ts";
import { type NanoUsd, nanoUsdOfColumn } from "../../money/nano-usd.ts";

export type RunningClaims = ReturnType<typeof createRunningClaims>;

/** Maximum bytes of answers that wait to be written to Postgres. Above it answers are not kept. */
const WAITING_BYTES_MAX = 64 * 1024 * 1024;
/**
 * Maximum megabytes of answers that this gateway stores in an hour, and the share of one account. They limit what
 * replaced answers take up until Postgres has vacuumed them. Above it answers are not kept.
 */
const STORED_MB_MAX = 4_096;
const STORED_SHARE = 1 / 16;
const STORED_WINDOW_MS = 3_600_000;
const RETRY_MS_MIN = 1_000;
const RETRY_MS_MAX = 30_000;
/** How long writing an outcome is retried. A claim without an outcome counts as running until its instance ends. */
const TRIED_MS_MAX = 24 * 3_600_000;
/** Maximum number of outcomes to retry, and separately of claims to delete. Above it further ones are dropped. */
const TRIED_AGAIN_MAX = 10_000;

/** After this time a claim's statement cannot be running: Postgres cancels it after 30 s (`db/statements.ts`). */
const UNDER_WAY_MS_MAX = 60_000;

/** Claims whose requests run in this process, and outcomes that are not in Postgres yet. */
export function createRunningClaims(
	{ claims, clock, log, room }: { claims: ClaimStore; clock: Clock; log: Log; room?: Pick<DiskRoom, "reserves"> },
	storedBytesMax = STORED_MB_MAX * 1024 * 1024,
) {
	const open = new SlotMap<{ claim: IdempotencyClaim; ended: PromiseWithResolvers<void> }>();
	const writing = new SlotPool<Promise<void>>();
	let waitingBytes = 0;
	const newWindow = () => ({
		endsAtMs: clock.monotonicMs() + STORED_WINDOW_MS,
		stored: createFairPool({ size: () => storedBytesMax, share: () => STORED_SHARE }),
	});
	let window = newWindow();
	/** Number of claims being deleted. It has its own limit, so that deletions do not block retries of outcomes. */
	let takenBack = 0;
	let stopped = false;
	/** Resolvers of the pauses before retries; `stop` calls them. */
	const pauses = new SlotPool<() => void>();

	function pause(pauseMs: number): Promise<void> {
		const { promise, resolve } = Promise.withResolvers<void>();
		const slot = pauses.take(resolve);
		const cancel = clock.after(pauseMs, resolve);
		return promise.finally(() => {
			cancel();
			pauses.release(slot, resolve);
		});
	}

	async function write(claim: IdempotencyClaim, statement: () => Promise<void>): Promise<void> {
		const untilMs = clock.monotonicMs() + TRIED_MS_MAX;
		for (let pauseMs = RETRY_MS_MIN; ; pauseMs = Math.min(2 * pauseMs, RETRY_MS_MAX)) {
			try {
				return await statement();
			} catch (error) {
				log.debug("an idempotency key's outcome was not written down", { error });
				if (stopped || writing.size - takenBack > TRIED_AGAIN_MAX || clock.monotonicMs() > untilMs) break;
				await pause(pauseMs);
			}
		}
		log.warn("an idempotency key's outcome could not be written down", { request: claim.requestUuid });
	}

	/** True if an answer may be stored, which then counts. False also while the disk is at its reserve. */
	function storesNow(accountId: string, bytes: number): boolean {
		if (clock.monotonicMs() >= window.endsAtMs) window = newWindow();
		if (waitingBytes + bytes > WAITING_BYTES_MAX || !window.stored.fits(accountId, bytes)) return false;
		if (room !== undefined && room.reserves(bytes) < 1) return false;
		window.stored.add(accountId, bytes);
		return true;
	}

	function end(claim: IdempotencyClaim, bytes: number, statement: () => Promise<void>): void {
		const running = open.get(claim.id);
		if (running?.claim !== claim) return;
		// A further end of the same claim is ignored. Repeated requests that wait for `ended` get this outcome.
		open.set(claim.id, { claim: { ...claim }, ended: running.ended });
		waitingBytes += bytes;
		track(
			write(claim, statement).finally(() => {
				waitingBytes -= bytes;
				if (open.get(claim.id)?.ended === running.ended) open.delete(claim.id);
				running.ended.resolve();
			}),
		);
	}

	function track(work: Promise<void>): void {
		const written = work.finally(() => writing.release(slot, written));
		const slot = writing.take(written);
	}

	/** Deletes a claim repeatedly: its insert may still commit, although its request never ran. */
	async function releaseRepeatedly(claim: IdempotencyClaim): Promise<void> {
		takenBack += 1;
		const untilMs = clock.monotonicMs() + UNDER_WAY_MS_MAX;
		for (let pauseMs = RETRY_MS_MIN; ; pauseMs = Math.min(2 * pauseMs, RETRY_MS_MAX)) {
			const isLast = stopped || clock.monotonicMs() >= untilMs;
			await write(claim, () => claims.release(claim));
			if (isLast) break;
			if (!stopped) await pause(pauseMs);
		}
		takenBack -= 1;
	}

	return {
		begin(claim: IdempotencyClaim) {
			open.set(claim.id, { claim, ended: Promise.withResolvers() });
		},
		/** Ends a claim with its encrypted answer. null: the answer is not kept. Idempotent. */
		keep(claim: IdempotencyClaim, sealed: Uint8Array | null) {
			const kept = sealed !== null && storesNow(claim.accountId, sealed.length) ? sealed : null;
			end(claim, kept?.length ?? 0, () => claims.keep(claim, kept));
		},
		/** Deletes a claim, so that a repeated request runs. */
		release(claim: IdempotencyClaim) {
			end(claim, 0, () => claims.release(claim));
		},
		/** Deletes a claim whose insert had an unknown result, until the insert cannot be running any more. */
		takeBack(claim: IdempotencyClaim) {
			if (takenBack < TRIED_AGAIN_MAX) track(releaseRepeatedly(claim));
		},
		/** The claim with this id if its request runs in this process; `ended` resolves when its outcome is written. */
		find(id: string): { readonly proof: string; readonly ended: Promise<void> } | undefined {
			const running = open.get(id);
			return running === undefined ? undefined : { proof: running.claim.proof, ended: running.ended.promise };
		},
		/** Tries once more to write each outcome, then stops. */
		async stop(): Promise<void> {
			stopped = true;
			for (const end of pauses) end();
			await Promise.all(writing);
		},
	};
}

export interface IdempotencyClaim {
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

export type ClaimStore = ReturnType<typeof createPgClaims>;

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
		async claim({ id, accountId, proof, requestUuid }: IdempotencyClaim): Promise<ClaimOutcome> {
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
		async keep({ id, requestUuid }: IdempotencyClaim, sealed: Uint8Array | null): Promise<void> {
			await statements`
				select idempotency_keep(${id}, ${requestUuid}::uuid, ${sealed}::bytea, ${limits.accountBytesMax}::bigint, ${limits.totalBytesMax}::bigint)`;
		},
		/** Deletes the claim of a failed request, so that a repeated request runs. */
		async release({ id, requestUuid }: IdempotencyClaim): Promise<void> {
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
