import type { Clock } from "../base/clock.ts";

/**
 * When journals with refused records are tried again. Each try reads the whole of one and sends all of it, and what the
 * database refused three times in a row it hardly takes ten seconds later: somebody has to look first.
 */
export interface RefusedJournals {
	mayTry(instanceId: string, epoch: number): boolean;
	/** It stays, and rests: twice as long each time. */
	refused(instanceId: string, epoch: number): void;
	handedIn(instanceId: string, epoch: number): void;
}

const REST_MS_MIN = 60_000;
const REST_MS_MAX = 3_600_000;

export function createRefusedJournals({ clock }: { clock: Clock }): RefusedJournals {
	/** As many as there are journals. */
	const resting = new Map<string, { untilMs: number; restMs: number }>();
	const nameOf = (instanceId: string, epoch: number) => `${instanceId}/${epoch}`;
	return {
		mayTry: (instanceId, epoch) => (resting.get(nameOf(instanceId, epoch))?.untilMs ?? 0) <= clock.monotonicMs(),
		refused(instanceId, epoch) {
			const before = resting.get(nameOf(instanceId, epoch));
			const restMs = before === undefined ? REST_MS_MIN : Math.min(2 * before.restMs, REST_MS_MAX);
			resting.set(nameOf(instanceId, epoch), { untilMs: clock.monotonicMs() + restMs, restMs });
		},
		handedIn(instanceId, epoch) {
			resting.delete(nameOf(instanceId, epoch));
		},
	};
}
