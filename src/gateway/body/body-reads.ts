import type { Clock } from "../../base/clock.ts";
import { createFairPool } from "../../base/fair-pool.ts";
import { Fault } from "../../base/fault.ts";
import { createLongRunWatch } from "../../base/moments.ts";
import { SlotPool } from "../../base/slot-pool.ts";
import { BODY_TIMEOUT_S, type Connection, IDLE_TIMEOUT_S, trySetIdleTimeout } from "../connection.ts";
import { stoppingFault } from "../error-body.ts";

/** Bodies that last longer than a moment. Each may fill its connection's buffers, some 64 KB that nothing else counts. */
const SLOW_BODIES_MAX = 4_096;
const SLOW_BODIES_SHARE = 1 / 2;

export type BodyReads = ReturnType<typeof createBodyReads>;

export interface SlowBody {
	letGo(stopping: Fault): void;
	/** Index in the pool; only the pool sets it. */
	slot: number;
}

/** Bodies being read, each with a deadline. */
export function createBodyReads(clock: Clock) {
	const lasting = new SlotPool<SlowBody>();
	let areLetGo = false;
	return {
		clock,
		slow: createFairPool({ size: () => SLOW_BODIES_MAX, share: () => SLOW_BODIES_SHARE, allYield: true }),
		/** Most bodies arrive within a moment and need no timer. */
		young: createLongRunWatch(clock, (body: { watch(): void }) => body.watch()),
		/** Adds a body. `letGo` is called at its deadline, or at once after the stop. */
		lasts(body: SlowBody) {
			body.slot = lasting.take(body);
			if (areLetGo) body.letGo(stoppingFault());
		},
		leaves: (body: SlowBody) => void lasting.release(body.slot, body),
		/** The process stops: clients that are still sending a body get an error. */
		letGo() {
			areLetGo = true;
			for (const body of [...lasting]) body.letGo(stoppingFault());
		},
	};
}

/**
 * Resolves with the body if it is in time. Faults: request_timeout, also for a broken connection; those of `reading`.
 */
export function inTime<T>(reads: BodyReads, deadlineMs: number, body: Omit<BodyReading<T, T>, "make">): Promise<T> {
	return madeInTime(reads, deadlineMs, { ...body, make: asItIs<T> });
}

const asItIs = <T>(read: T): T => read;

export interface BodyReading<Read, Made> {
	/** The account; empty: counted by address. */
	readonly owner: string;
	readonly connection: Connection;
	readonly reading: Promise<Read>;
	make(read: Read): Made | Promise<Made>;
	/** The body is slow: counts what it holds. `end` gives it up. */
	lasts?(end: (why: Fault) => void): void;
}

/** Resolves with what `make` makes of a body in time. Faults as in `inTime`; other errors of `make` are rethrown. */
export function madeInTime<Read, Made>(
	reads: BodyReads,
	deadlineMs: number,
	body: BodyReading<Read, Made>,
): Promise<Made> {
	return new TimedBody(reads, deadlineMs, body).made;
}

/** A class instead of closures, which allocates less: there is one per request. */
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
		// Its request has ended and gave back what it held.
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
