import type { Clock } from "../../base/clock.ts";
import { createMoments } from "../../base/moments.ts";
import { SlotPool } from "../../base/slot-pool.ts";

/** A call as its registry sees it. */
export interface OpenCall {
	/** The call has lasted for a moment. */
	watch(): void;
	/** Ends the call: this process is stopping. */
	letGo(): void;
	/** Slot among the lasting calls; set only by the registry. */
	slot: number;
}

export type OpenCalls = ReturnType<typeof createOpenCalls>;

/** Registry of calls under way. A call that is answered at once needs no listener, no timer and no slot. */
export function createOpenCalls(clock: Clock) {
	const young = createMoments<OpenCall>(clock, (call) => call.watch());
	const lasting = new SlotPool<OpenCall>();
	let areLetGo = false;
	return {
		/** Registers a call, whose `watch` runs once it has lasted for a moment. Returns the number for `end`. */
		begin: young.begin,
		end: young.end,
		/** From now on `letGo` ends the call, at once if it was already called. */
		lasts(call: OpenCall) {
			call.slot = lasting.take(call);
			if (areLetGo) call.letGo();
		},
		/** Removes a call that is over or that its caller ends. */
		leaves: (call: OpenCall) => void lasting.release(call.slot, call),
		/** Ends all lasting calls, and each further call that becomes a lasting one. */
		letGo() {
			areLetGo = true;
			for (const call of [...lasting]) call.letGo();
		},
	};
}
