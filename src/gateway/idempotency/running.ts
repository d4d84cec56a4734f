import { type Clock, sleep } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import { SlotMap } from "../../base/slot-map.ts";
import { SlotPool } from "../../base/slot-pool.ts";
import type { Claim, Claims } from "./claims.ts";

export type Running = ReturnType<typeof createRunning>;

/** Answers that wait for Postgres; beyond it they are not kept. */
const WAITING_BYTES_MAX = 64 * 1024 * 1024;
const RETRY_MS_MIN = 1_000;
const RETRY_MS_MAX = 30_000;
/** An answer is useless after a day. An outcome that was given up counts as running until its instance has left. */
const TRIED_MS_MAX = 24 * 3_600_000;
/** Outcomes that are retried at once; beyond it a failing one is given up. */
const TRIED_AGAIN_MAX = 10_000;

/** Claims whose requests run in this process, and outcomes that are still to be written. */
export function createRunning(deps: { claims: Claims; clock: Clock; log: Log }) {
	const { claims, clock, log } = deps;
	const open = new SlotMap<{ claim: Claim; ended: PromiseWithResolvers<void> }>();
	const writing = new SlotPool<Promise<void>>();
	const unsure = createUnsureClaims(deps);
	let waitingBytes = 0;
	let waiting = 0;
	let stopped = false;
	/** Ends the pauses of outcomes that wait for a retry. */
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

	async function write(claim: Claim, statement: () => Promise<void>): Promise<void> {
		const untilMs = clock.monotonicMs() + TRIED_MS_MAX;
		for (let pauseMs = RETRY_MS_MIN; ; pauseMs = Math.min(2 * pauseMs, RETRY_MS_MAX)) {
			try {
				return await statement();
			} catch (error) {
				log.debug("an idempotency key's outcome was not written down", { error });
				if (stopped || writing.size > TRIED_AGAIN_MAX || clock.monotonicMs() > untilMs) break;
				await pause(pauseMs);
			}
		}
		log.warn("an idempotency key's outcome could not be written down", { request: claim.requestUuid });
	}

	function end(claim: Claim, bytes: number, statement: () => Promise<void>): void {
		const running = open.get(claim.id);
		if (running?.claim !== claim) return;
		// A second end finds the claim ended; waiting requests still wait for the first one's outcome.
		open.set(claim.id, { claim: { ...claim }, ended: running.ended });
		waitingBytes += bytes;
		const written = write(claim, statement).finally(() => {
			waitingBytes -= bytes;
			writing.release(slot, written);
			if (open.get(claim.id)?.ended === running.ended) open.delete(claim.id);
			running.ended.resolve();
		});
		const slot = writing.take(written);
	}

	return {
		begin(claim: Claim) {
			open.set(claim.id, { claim, ended: Promise.withResolvers() });
		},
		/** Ends a claim with its sealed answer; null if it is not kept. Idempotent. */
		keep(claim: Claim, sealed: Uint8Array | null) {
			const kept = sealed !== null && waitingBytes + sealed.length <= WAITING_BYTES_MAX ? sealed : null;
			end(claim, kept?.length ?? 0, () => claims.keep(claim, kept));
		},
		/** Ends a claim as if it had not been made. */
		release(claim: Claim) {
			end(claim, 0, () => claims.release([claim]));
		},
		/** The claim's result is unknown and the request did not run: it is released as soon as possible. */
		takeBack: (claim: Claim) => unsure.add(claim),
		/** The claim that runs here; `ended` resolves when its outcome is written. */
		find(id: string): { readonly proof: string; readonly ended: Promise<void> } | undefined {
			const running = open.get(id);
			return running === undefined ? undefined : { proof: running.claim.proof, ended: running.ended.promise };
		},
		/** Whether fewer than `max` requests wait. */
		mayWait: (max: number): boolean => waiting < max,
		/** Counts a waiting request. */
		async waiting(pause: Promise<void>): Promise<void> {
			waiting += 1;
			await pause.finally(() => {
				waiting -= 1;
			});
		},
		/** Tries once more to write the outcomes, then stops. */
		async stop(): Promise<void> {
			stopped = true;
			for (const end of pauses) end();
			await Promise.all([...writing, unsure.stop()]);
		},
	};
}

const PAUSE_MS = 1_000;
/** The server ends statements after 30 s (`db/statements.ts`); then as long again. */
const UNDER_WAY_MS_MAX = 60_000;
/** Beyond it a claim is not released: if it was made, it counts as running until its instance has left. */
const UNSURE_MAX = 10_000;

/**
 * Claims without a reply: their statements may still commit, and no other part knows that their requests never ran.
 * Each is released repeatedly until no statement can be in flight.
 */
export function createUnsureClaims(deps: { claims: Claims; clock: Clock; log: Log }) {
	const { claims, clock, log } = deps;
	/** Oldest first. */
	let unsure: { readonly claim: Claim; readonly untilMs: number }[] = [];
	let goesOn = false;
	let stopped = false;

	async function release(): Promise<void> {
		const nowMs = clock.monotonicMs();
		try {
			await claims.release(unsure.map(({ claim }) => claim));
			unsure = unsure.filter(({ untilMs }) => untilMs > nowMs);
		} catch (error) {
			log.debug("idempotency keys could not be taken back", { error, keys: unsure.length });
		}
	}

	async function goOn(): Promise<void> {
		goesOn = true;
		while (unsure.length > 0 && !stopped) {
			await sleep(clock, PAUSE_MS);
			if (!stopped) await release();
		}
		goesOn = false;
	}

	return {
		add(claim: Claim) {
			if (unsure.length >= UNSURE_MAX) {
				log.debug("an idempotency key is not taken back: too many are", { request: claim.requestUuid });
				return;
			}
			unsure.push({ claim, untilMs: clock.monotonicMs() + UNDER_WAY_MS_MAX });
			if (!goesOn) void goOn();
		},
		size: (): number => unsure.length,
		/** Tries once more. */
		async stop(): Promise<void> {
			stopped = true;
			if (unsure.length > 0) await release();
		},
	};
}
