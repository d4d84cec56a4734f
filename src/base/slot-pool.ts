/**
 * The objects open at once, in no order. Each has a slot number, reused after release. Not a Set: a Set whose members
 * come and go gets new tables repeatedly, and each old table points to the newer one. One old table that survived a
 * young collection keeps everything in the later ones until a full collection. Measured with 32 open and 100,000
 * released: 127,000 live objects instead of 139, and young collections of 3 to 28 ms instead of 0.2.
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

	/** Returns the slot. */
	take(one: One): number {
		const slot = this.#released.pop() ?? this.#ones.length;
		this.#ones[slot] = one;
		return slot;
	}

	at(slot: number): One | undefined {
		return this.#ones[slot];
	}

	/** False if it is not in that slot, or not any more. */
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

	/** Visits the present members; any may be released during the iteration. */
	*[Symbol.iterator](): Iterator<One> {
		for (let slot = 0; slot < this.#ones.length; slot++) {
			const one = this.#ones[slot];
			if (one !== undefined) yield one;
		}
	}
}

/** Memory of more slots than this is freed once the pool is empty. */
const EMPTY_REACH_MAX = 1_024;
