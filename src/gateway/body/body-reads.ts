import type { Clock } from "../../base/clock.ts";
import { createFairPool } from "../../base/fair-pool.ts";
import { Fault } from "../../base/fault.ts";
import { createLongRunWatch } from "../../base/moments.ts";
import { SlotPool } from "../../base/slot-pool.ts";
import { BODY_TIMEOUT_S, type Connection, IDLE_TIMEOUT_S, trySetIdleTimeout } from "../connection.ts";
import { stoppingFault } from "../error-body.ts";

/** Most slow bodies at once. Each may fill buffers of some 64 KB of its connection, which nothing else counts. */
const SLOW_BODIES_MAX = 4_096;
const SLOW_BODIES_SHARE = 1 / 2;
/** Megabytes of large bodies that are read whole, of which the runtime does not tell how much has arrived. */
const WHOLE_MB_MAX = 16;
const WHOLE_SHARE = 3 / 4;

export type BodyReads = ReturnType<typeof createBodyReads>;

export interface SlowBody {
	letGo(stopping: Fault): void;
	slot: number;
}

/** Bodies that are being read, each with a deadline. */
export function createBodyReads(clock: Clock) {
	const lasting = new SlotPool<SlowBody>();
	let areLetGo = false;
	return {
		clock,
		slow: createFairPool({ size: () => SLOW_BODIES_MAX, share: () => SLOW_BODIES_SHARE, allYield: true }),
		whole: createFairPool({ size: () => WHOLE_MB_MAX * 1024 * 1024, share: () => WHOLE_SHARE }),
		/** Bodies that have just begun share one timer. Most arrive before it fires; `watch` is called for the others. */
		young: createLongRunWatch(clock, (body: { watch(): void }) => body.watch()),
		/** Adds a slow body. Its `letGo` is called at the deadline, or at once if the process is stopping. */
		lasts(body: SlowBody) {
			body.slot = lasting.take(body);
			if (areLetGo) body.letGo(stoppingFault());
		},
		leaves: (body: SlowBody) => void lasting.release(body.slot, body),
		/** Called when the process stops: clients that are still sending get an error. */
		letGo() {
			areLetGo = true;
			for (const body of [...lasting]) body.letGo(stoppingFault());
		},
	};
}

/** Resolves with the body in time. Fault request_timeout, also for a broken connection; `reading`'s faults pass. */
export function inTime<T>(reads: BodyReads, deadlineMs: number, body: Omit<BodyReading<T, T>, "make">): Promise<T> {
	return madeInTime(reads, deadlineMs, { ...body, make: asItIs<T> });
}

const asItIs = <T>(read: T): T => read;

export interface BodyReading<Read, Made> {
	/** The account that the body counts for; empty: the client's address counts instead. */
	readonly owner: string;
	readonly connection: Connection;
	readonly reading: Promise<Read>;
	make(read: Read): Made | Promise<Made>;
	/** Called when the body is slow, to count its memory. `end` gives the body up. */
	lasts?(end: (why: Fault) => void): void;
}

/** Reads a body in time and resolves with `make`'s result. Faults as in `inTime`; errors of `make` are rethrown. */
export function madeInTime<Read, Made>(
	reads: BodyReads,
	deadlineMs: number,
	body: BodyReading<Read, Made>,
): Promise<Made> {
	return new TimedBody(reads, deadlineMs, body).made;
}

/** A class allocates less than closures; there is one per request. */
class TimedBody<Read, Made> implements SlowBody {
	readonly made: Promise<Made>;
	readonly #reads: BodyReads;
	/** Monotonic time of the deadline. */
	readonly #lateAtMs: number;
	readonly #body: BodyReading<Read, Made>;
	readonly #resolve: (made: Made | Promise<Made>) => void;
	readonly #reject: (cause: unknown) => void;
	readonly #moment: number;
	#cancel: (() => void) | undefined;
	#leave: (() => void) | undefined;
	#isLetGo = false;
	slot = -1;

	constructor(reads: BodyReads, deadlineMs: number, body: BodyReading<Read, Made>) {
		const { promise, resolve, reject } = Promise.withResolvers<Made>();
		this.made = promise;
		this.#reads = reads;
		this.#lateAtMs = reads.clock.monotonicMs() + deadlineMs;
		this.#body = body;
		this.#resolve = resolve;
		this.#reject = reject;
		this.#moment = reads.young.begin(this);
		body.reading.then(
			(read) => this.#came(read),
			(cause: unknown) => this.#failed(cause),
		);
	}

	watch(): void {
		const { clock, slow } = this.#reads;
		const { owner, connection } = this.#body;
		try {
			this.#leave = slow.enter(owner || connection.address, {
				pace: () => this.#lateAtMs,
				giveUp: (why) => this.letGo(why),
			});
			this.#body.lasts?.((why) => this.letGo(why));
		} catch (why) {
			this.letGo(why as Fault);
			return;
		}
		trySetIdleTimeout(connection, BODY_TIMEOUT_S);
		this.#cancel = clock.after(this.#lateAtMs - clock.monotonicMs(), () => {
			this.letGo(new Fault("request_timeout", "The request body was sent too slowly."));
		});
		this.#reads.lasts(this);
	}

	letGo(why: Fault): void {
		this.#isLetGo = true;
		this.#lastsNoMore();
		this.#reject(why);
	}

	#lastsNoMore(): void {
		this.#cancel?.();
		this.#leave?.();
		this.#reads.leaves(this);
		trySetIdleTimeout(this.#body.connection, IDLE_TIMEOUT_S);
	}

	#over(): void {
		if (this.#reads.young.end(this.#moment)) this.#lastsNoMore();
	}

	#came(read: Read): void {
		// The request has ended and released its memory.
		if (this.#isLetGo) return;
		this.#over();
		try {
			this.#resolve(this.#body.make(read));
		} catch (error) {
			this.#reject(error);
		}
	}

	#failed(cause: unknown): void {
		this.#over();
		this.#reject(
			cause instanceof Fault
				? cause
				: new Fault("request_timeout", "The request body is incomplete. Please send the request again.", { cause }),
		);
	}
}
