/**
 * An unordered set of objects, each with a slot number that is reused after release. Not a Set: one whose members come
 * and go replaces its tables repeatedly, and each old table refers to the newer one. A single old table that survives a
 * young collection keeps all later members in memory until a full collection. Measured with 32 open and 100,000
 * released objects: 127,000 alive instead of 139, young collections of 3 to 28 ms instead of 0.2.
 */
export class SlotPool<One extends object> implements Iterable<One> {
	readonly #ones: (One | undefined)[] = [];
	readonly #released: number[] = [];

	get size(): number {
		return this.#ones.length - this.#released.length;
	}

	/** Exclusive upper bound of the slots in use (high-water mark). */
	get reach(): number {
		return this.#ones.length;
	}

	take(one: One): number {
		const slot = this.#released.pop() ?? this.#ones.length;
		this.#ones[slot] = one;
		return slot;
	}

	at(slot: number): One | undefined {
		return this.#ones[slot];
	}

	/** Removes an object from its slot. False if the slot contains another object or none. */
	release(slot: number, one: One): boolean {
		if (this.#ones[slot] !== one) return false;
		this.#ones[slot] = undefined;
		this.#released.push(slot);
		if (this.size === 0 && this.#ones.length > EMPTY_REACH_MAX) this.clear();
		return true;
	}

	clear(): void {
		this.#ones.length = 0;
		this.#released.length = 0;
	}

	/** Visits all members, any of which may be released during the iteration. */
	*[Symbol.iterator](): Iterator<One> {
		for (let slot = 0; slot < this.#ones.length; slot++) {
			const one = this.#ones[slot];
			if (one !== undefined) yield one;
		}
	}
}

/** Slots above this number are freed once the pool is empty. */
const EMPTY_REACH_MAX = 1_024;
