import { createFairPool, type EvictableHolder, type FairPool } from "../../base/fair-pool.ts";
import { Fault } from "../../base/fault.ts";
import { chargeRefusedBody } from "../../base/time-slice.ts";
import type { ServiceLimits } from "../../catalog/service-limits.ts";
import { addressNetwork } from "../../keys/failed-attempts.ts";
import { type Connection, UNREAD_BYTES_MAX, unreadBytes } from "../connection.ts";
import type { ByteCounter } from "./bytes-body.ts";

export type BodyMemory = ReturnType<typeof createBodyMemory>;

/** Bodies up to this size are not counted, because they need little more than their request itself. */
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
	const hold = (owner: string) => new BodyHold(pool, owner);
	return {
		hold,
		bytes: pool.all,
		/** Waits for a key. Until then its account is unknown, so an unread body counts for the client's network. */
		async untilKnown<Key>(key: Promise<Key>, { address, request }: Connection): Promise<Key> {
			const held = hold(addressNetwork(address));
			// The memory may refuse the body before the key is found.
			key.catch(() => {});
			try {
				held.take(0, unreadBytes(request));
				return await key;
			} finally {
				held.release();
			}
		},
	};
}

/** Memory of a request's body from its first bytes until the answer. A class, because closures take more memory. */
export class BodyHold implements ByteCounter, EvictableHolder {
	readonly owner: string;
	readonly #pool: FairPool;
	#seen = 0;
	#held = 0;
	#beganMs = 0;
	/** Bytes that this body asked for; more than `#held` if the pool refused them. */
	#most = 0;
	#end: ((why: Fault) => void) | undefined;
	#slot = -1;

	constructor(pool: FairPool, owner: string) {
		this.#pool = pool;
		this.owner = owner;
	}

	/**
	 * Adds received bytes, and of the `unread` bytes those that the runtime may receive before they are read. Fault
	 * rate_limit_exceeded at the account's limit, overloaded at the limit of all accounts.
	 */
	take(bytes: number, unread = 0): void {
		this.#seen += bytes;
		this.#most = Math.max(this.#most, this.#seen + Math.min(unread, UNREAD_BYTES_MAX));
		if (this.#most <= UNCOUNTED_BYTES || this.#most <= this.#held) return;
		this.#pool.take(this.owner, this.#most - this.#held);
		this.#held = this.#most;
		this.#yields();
	}

	/** Call it when reading begins. From then until `arrived`, `end` is called if another account needs the memory. */
	arrives(end: (why: Fault) => void): void {
		this.#end = end;
		this.#beganMs = performance.now();
		this.#yields();
	}

	#yields(): void {
		if (this.#end !== undefined && this.#held > 0 && this.#slot < 0) this.#slot = this.#pool.yields(this);
	}

	/** Call it when the whole body was received. */
	arrived(): void {
		this.#end = undefined;
		if (this.#slot >= 0) this.#pool.keeps(this.#slot, this);
		this.#slot = -1;
		if (this.#held > this.#seen) this.#pool.giveBack(this.owner, this.#held - this.#seen);
		this.#held = Math.min(this.#held, this.#seen);
		this.#most = this.#seen;
	}

	/** Call it when the request is refused before admission. Resolves when the refusal may be answered. */
	refused(signal: AbortSignal): Promise<void> | undefined {
		const isLarge = this.#most > UNCOUNTED_BYTES;
		this.release();
		return isLarge ? chargeRefusedBody(this.owner, signal) : undefined;
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
