import type { Clock } from "../../base/clock.ts";
import { createFairPool } from "../../base/fair-pool.ts";
import { Fault } from "../../base/fault.ts";
import { createLongRunWatch } from "../../base/moments.ts";
import { SlotPool } from "../../base/slot-pool.ts";
import { BODY_TIMEOUT_S, type Connection, IDLE_TIMEOUT_S, trySetIdleTimeout } from "../connection.ts";
import { stoppingFault } from "../error-body.ts";

/** Maximum number of slow bodies. Each may fill some 64 KB of buffers of its connection, which no limit counts. */
const SLOW_BODIES_MAX = 4_096;
const SLOW_BODIES_SHARE = 1 / 2;
/** Megabytes of large bodies being read in one step. The declared length counts: Bun does not tell what has arrived. */
const WHOLE_MB_MAX = 16;
const WHOLE_SHARE = 3 / 4;

export type BodyReads = ReturnType<typeof createBodyReads>;

export interface SlowBody {
	letGo(stopping: Fault): void;
	slot: number;
}

/** Request bodies that are being read, each with a deadline. */
export function createBodyReads(clock: Clock) {
	const lasting = new SlotPool<SlowBody>();
	let areLetGo = false;
	return {
		clock,
		slow: createFairPool({ size: () => SLOW_BODIES_MAX, share: () => SLOW_BODIES_SHARE, allYield: true }),
		whole: createFairPool({ size: () => WHOLE_MB_MAX * 1024 * 1024, share: () => WHOLE_SHARE }),
		/** New bodies share one timer. Most arrive before it fires; for each body that did not, it calls `watch`. */
		young: createLongRunWatch(clock, (body: { watch(): void }) => body.watch()),
		/** Adds a slow body. `letGo` is called when the process stops, or immediately if it is already stopping. */
		lasts(body: SlowBody) {
			body.slot = lasting.take(body);
			if (areLetGo) body.letGo(stoppingFault());
		},
		leaves: (body: SlowBody) => void lasting.release(body.slot, body),
		/** Called when the process stops: clients that are still sending a body get an error. */
		letGo() {
			areLetGo = true;
			for (const body of [...lasting]) body.letGo(stoppingFault());
		},
	};
}

/**
 * Resolves with the body. Fault request_timeout at the deadline or for a broken connection; passes `reading`'s faults.
 */
export function readBeforeDeadline<T>(
	reads: BodyReads,
	deadlineMs: number,
	body: Omit<BodyReading<T, T>, "make">,
): Promise<T> {
	return makeBeforeDeadline(reads, deadlineMs, { ...body, make: asItIs<T> });
}

const asItIs = <T>(read: T): T => read;

export interface BodyReading<Read, Made> {
	/** The account whose share of slow bodies is used; if empty, the client's address is used instead. */
	readonly owner: string;
	readonly connection: Connection;
	readonly reading: Promise<Read>;
	make(read: Read): Made | Promise<Made>;
	/** Called when the body turns out to be slow, to count its memory. Calling `end` aborts the reading. */
	lasts?(end: (why: Fault) => void): void;
}

/**
 * Reads a body and resolves with the result of `make`, whose errors are rethrown. Faults as in `readBeforeDeadline`.
 */
export function makeBeforeDeadline<Read, Made>(
	reads: BodyReads,
	deadlineMs: number,
	body: BodyReading<Read, Made>,
): Promise<Made> {
	return new TimedBody(reads, deadlineMs, body).made;
}

/** A class, because it allocates less than closures and every request creates one. */
class TimedBody<Read, Made> implements SlowBody {
	readonly made: Promise<Made>;
	readonly #reads: BodyReads;
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
		// The request was already answered with an error and has released its memory.
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
