import { createFairPool, type EvictableHolder, type FairPool } from "../../base/fair-pool.ts";
import { Fault } from "../../base/fault.ts";
import { chargeRefusedWork } from "../../base/time-slice.ts";
import type { ServiceLimits } from "../../catalog/service-limits.ts";
import type { ByteCounter } from "./bytes-body.ts";

/** Assumed CPU time for receiving and checking a body that is refused; it counts against the account. */
const REFUSED_MS = 4;

export type BodyMemory = ReturnType<typeof createBodyMemory>;

/** Bodies up to this size are not counted, because they fit into a connection's own buffers. */
const UNCOUNTED_BYTES = 16 * 1024;

/**
 * Counts the received bytes of request bodies per account. If the memory is full, the account that uses most of it
 * loses its slowest upload, in favour of an account that uses less.
 */
export function createBodyMemory(deps: {
	limits(): Pick<ServiceLimits, "bodyMemoryBytesMax" | "bodyMemoryAccountBytesMax">;
}) {
	const pool = createFairPool({
		size: () => deps.limits().bodyMemoryBytesMax,
		share: () => deps.limits().bodyMemoryAccountBytesMax / deps.limits().bodyMemoryBytesMax,
		own: () =>
			new Fault(
				"rate_limit_exceeded",
				"This account's concurrent request bodies are too large. Retry when others have been answered.",
				{ retryAfterS: 1 },
			),
		full: () =>
			new Fault("overloaded", "The service is receiving too much data. Please try again.", { retryAfterS: 1 }),
	});
	return { hold: (accountId: string) => new BodyHold(pool, accountId), bytes: pool.all };
}

/** Memory of a request's body from its first bytes until the answer. A class, because closures take more memory. */
export class BodyHold implements ByteCounter, EvictableHolder {
	readonly owner: string;
	readonly #pool: FairPool;
	#seen = 0;
	#held = 0;
	#beganMs = 0;
	#end: ((why: Fault) => void) | undefined;
	#slot = -1;

	constructor(pool: FairPool, owner: string) {
		this.#pool = pool;
		this.owner = owner;
	}

	/** Adds received bytes. Fault rate_limit_exceeded at the account's limit, overloaded at the limit of all accounts. */
	take(bytes: number): void {
		this.#seen += bytes;
		if (this.#seen <= UNCOUNTED_BYTES) return;
		this.#pool.take(this.owner, this.#seen - this.#held);
		this.#held = this.#seen;
		if (this.#end !== undefined && this.#slot < 0) this.#slot = this.#pool.yields(this);
	}

	/** Call it when reading begins. From then until `arrived`, `end` is called if another account needs the memory. */
	arrives(end: (why: Fault) => void): void {
		this.#end = end;
		this.#beganMs = performance.now();
	}

	arrived(): void {
		this.#end = undefined;
		if (this.#slot >= 0) this.#pool.keeps(this.#slot, this);
		this.#slot = -1;
	}

	/** Call it when the request is refused before admission. Resolves when the refusal may be answered. */
	refused(): Promise<void> | undefined {
		this.release();
		return this.#seen > UNCOUNTED_BYTES ? chargeRefusedWork(this.owner, REFUSED_MS) : undefined;
	}

	pace(): number {
		return this.#seen / (performance.now() - this.#beganMs);
	}

	giveUp(why: Fault): void {
		const end = this.#end;
		this.release();
		end?.(why);
	}

	/** Call it when the request ends, to return its memory. */
	release(): void {
		this.arrived();
		if (this.#held > 0) this.#pool.giveBack(this.owner, this.#held);
		this.#held = 0;
	}
}
