import type { Clock } from "../../base/clock.ts";
import { createMoments } from "../../base/moments.ts";
import { SlotPool } from "../../base/slot-pool.ts";

/** A call as those see it that look after all of them. */
export interface OpenCall {
	/** It has lasted for a moment. */
	watch(): void;
	/** Ends it: this process stops. */
	letGo(): void;
	/** Among those that last; not the call's to set. */
	slot: number;
}

/** Calls under way. One that is answered at once has no listener, no timer and no place here. */
export interface OpenCalls {
	/** It is told when it has lasted for a moment. Gives the number that ends this. */
	begin(call: OpenCall): number;
	end(nth: number): void;
	/** From here on `letGo` ends it; behind that it does so at once. */
	lasts(call: OpenCall): void;
	/** It is over, or its caller's to end. */
	leaves(call: OpenCall): void;
	/** Ends those that last, and each other one that comes to last. */
	letGo(): void;
}

export function createOpenCalls(clock: Clock): OpenCalls {
	const young = createMoments<OpenCall>(clock, (call) => call.watch());
	const lasting = new SlotPool<OpenCall>();
	let areLetGo = false;
	return {
		begin: young.begin,
		end: young.end,
		lasts(call) {
			call.slot = lasting.take(call);
			if (areLetGo) call.letGo();
		},
		leaves: (call) => void lasting.release(call.slot, call),
		letGo() {
			areLetGo = true;
			for (const call of [...lasting]) call.letGo();
		},
	};
}
