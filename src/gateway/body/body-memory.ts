import { assert } from "../../base/assert.ts";
import { CounterMap } from "../../base/counter-map.ts";
import { Fault } from "../../base/fault.ts";
import type { ServiceLimits } from "../../catalog/service-limits.ts";

export type BodyMemory = ReturnType<typeof createBodyMemory>;

/** Smaller bodies are not counted, because they fit into a connection's own buffers. */
const UNCOUNTED_BYTES = 16 * 1024;

/** Counts the bytes of bodies in memory per account. Bytes beyond the limits are refused before they are read. */
export function createBodyMemory(deps: {
	limits(): Pick<ServiceLimits, "bodyMemoryBytesMax" | "bodyMemoryAccountBytesMax">;
}) {
	const held = new CounterMap();
	let all = 0;

	function take(accountId: string, bytes: number): void {
		const { bodyMemoryBytesMax, bodyMemoryAccountBytesMax } = deps.limits();
		if (held.of(accountId) + bytes > bodyMemoryAccountBytesMax) {
			throw new Fault(
				"rate_limit_exceeded",
				"This account's concurrent request bodies are too large. Retry when others have been answered.",
				{ retryAfterS: 1 },
			);
		}
		if (all + bytes > bodyMemoryBytesMax)
			throw new Fault("overloaded", "The service is receiving too much data. Please try again.", { retryAfterS: 1 });
		held.add(accountId, bytes);
		all += bytes;
	}

	function giveBack(accountId: string, bytes: number): void {
		assert(held.of(accountId) >= bytes && all >= bytes, "a body gives back what it took");
		held.add(accountId, -bytes);
		all -= bytes;
	}

	const owner = { take, giveBack };
	return {
		hold: (accountId: string) => new BodyHold(owner, accountId),
		bytes: (): number => all,
	};
}

type Change = (accountId: string, bytes: number) => void;

/** Memory of a request's body, from before it is read until the answer. A class, because there is one per request. */
export class BodyHold {
	readonly #owner: { readonly take: Change; readonly giveBack: Change };
	readonly #accountId: string;
	#seen = 0;
	#held = 0;

	constructor(owner: { readonly take: Change; readonly giveBack: Change }, accountId: string) {
		this.#owner = owner;
		this.#accountId = accountId;
	}

	/** Adds bytes. Faults: rate_limit_exceeded at the account's limit, overloaded at the limit of all accounts. */
	take(bytes: number): void {
		this.#seen += bytes;
		if (this.#seen <= UNCOUNTED_BYTES) return;
		this.#owner.take(this.#accountId, this.#seen - this.#held);
		this.#held = this.#seen;
	}

	/** Must be called when the request ends. */
	release(): void {
		if (this.#held > 0) this.#owner.giveBack(this.#accountId, this.#held);
		this.#held = 0;
	}
}
