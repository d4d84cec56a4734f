/** Where somebody stands in a `Line`. */
export interface Standing<One> {
	readonly one: One;
	/** Whoever came later has a higher one. */
	readonly nth: number;
	before: Standing<One> | undefined;
	behind: Standing<One> | undefined;
	isThere: boolean;
}

/**
 * First in, first out; anybody may leave at any time. Not a Set, for what `SlotPool` says; who leaves lets go of both
 * neighbours, so that one who has become old in the line keeps none who came later.
 */
export class Line<One> implements Iterable<One> {
	#first: Standing<One> | undefined;
	#last: Standing<One> | undefined;
	#size = 0;
	#came = 0;

	get size(): number {
		return this.#size;
	}

	get last(): One | undefined {
		return this.#last?.one;
	}

	add(one: One): Standing<One> {
		const standing: Standing<One> = { one, nth: this.#came, before: this.#last, behind: undefined, isThere: true };
		if (this.#last === undefined) this.#first = standing;
		else this.#last.behind = standing;
		this.#last = standing;
		this.#size += 1;
		this.#came += 1;
		return standing;
	}

	/** False if it has left before. */
	delete(standing: Standing<One>): boolean {
		if (!standing.isThere) return false;
		const { before, behind } = standing;
		if (before === undefined) this.#first = behind;
		else before.behind = behind;
		if (behind === undefined) this.#last = before;
		else behind.before = before;
		standing.before = undefined;
		standing.behind = undefined;
		standing.isThere = false;
		this.#size -= 1;
		return true;
	}

	/** Anybody may leave meanwhile; whoever comes is met too. */
	*[Symbol.iterator](): Iterator<One> {
		let standing = this.#first;
		while (standing !== undefined) {
			yield standing.one;
			standing = standing.isThere ? standing.behind : this.#firstAfter(standing.nth);
		}
	}

	#firstAfter(nth: number): Standing<One> | undefined {
		let standing = this.#first;
		while (standing !== undefined && standing.nth <= nth) standing = standing.behind;
		return standing;
	}
}
