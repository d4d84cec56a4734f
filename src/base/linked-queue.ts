export interface QueueNode<One> {
	readonly one: One;
	/** Place in the order of insertion; increases. */
	readonly nth: number;
	before: QueueNode<One> | undefined;
	behind: QueueNode<One> | undefined;
	isThere: boolean;
}

/**
 * First in, first out; a node may leave at any time. Not a Set, for the reason given in `SlotPool`. A node that leaves
 * releases its neighbours, so that an old node keeps no later ones in memory.
 */
export class LinkedQueue<One> implements Iterable<One> {
	#first: QueueNode<One> | undefined;
	#last: QueueNode<One> | undefined;
	#size = 0;
	#came = 0;

	get size(): number {
		return this.#size;
	}

	get first(): One | undefined {
		return this.#first?.one;
	}

	get last(): One | undefined {
		return this.#last?.one;
	}

	add(one: One): QueueNode<One> {
		const node: QueueNode<One> = { one, nth: this.#came, before: this.#last, behind: undefined, isThere: true };
		if (this.#last === undefined) this.#first = node;
		else this.#last.behind = node;
		this.#last = node;
		this.#size += 1;
		this.#came += 1;
		return node;
	}

	/** Adds a value before all others. */
	addFirst(one: One): QueueNode<One> {
		const first = this.#first;
		if (first === undefined) return this.add(one);
		const node: QueueNode<One> = { one, nth: first.nth - 1, before: undefined, behind: first, isThere: true };
		first.before = node;
		this.#first = node;
		this.#size += 1;
		return node;
	}

	/** Removes a node. False if it was removed already. */
	delete(node: QueueNode<One>): boolean {
		if (!node.isThere) return false;
		const { before, behind } = node;
		if (before === undefined) this.#first = behind;
		else before.behind = behind;
		if (behind === undefined) this.#last = before;
		else behind.before = before;
		node.before = undefined;
		node.behind = undefined;
		node.isThere = false;
		this.#size -= 1;
		return true;
	}

	/** Nodes may be removed during the iteration; added ones are visited too. */
	*[Symbol.iterator](): Iterator<One> {
		let node = this.#first;
		while (node !== undefined) {
			yield node.one;
			node = node.isThere ? node.behind : this.#firstAfter(node.nth);
		}
	}

	#firstAfter(nth: number): QueueNode<One> | undefined {
		let node = this.#first;
		while (node !== undefined && node.nth <= nth) node = node.behind;
		return node;
	}
}
