import type { Clock } from "../base/clock.ts";

/**
 * Decides when journals with refused records are tried again. Each try reads and sends the whole journal. A record
 * refused three times in a row is hardly accepted ten seconds later: the operator has to act first.
 */
export interface RefusedJournals {
	mayTry(instanceId: string, epoch: number): boolean;
	/** The journal stays, and rests twice as long each time. */
	refused(instanceId: string, epoch: number): void;
	handedIn(instanceId: string, epoch: number): void;
}

const REST_MS_MIN = 60_000;
const REST_MS_MAX = 3_600_000;

export function createRefusedJournals({ clock }: { clock: Clock }): RefusedJournals {
	/** At most as many as there are journals. */
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
