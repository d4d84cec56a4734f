import { type Clock, sleep } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import type { Claim, Claims } from "./claims.ts";

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
