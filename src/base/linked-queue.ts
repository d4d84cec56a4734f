export interface QueueNode<One> {
	readonly one: One;
	/** Number of the node in the order of insertion, which only increases. */
	readonly nth: number;
	before: QueueNode<One> | undefined;
	behind: QueueNode<One> | undefined;
	isThere: boolean;
}

/**
 * Queue (first in, first out) from which any node may be removed. Not a Set, for the reason given in `SlotPool`. A
 * removed node drops its links to its neighbours, so that a referenced old node keeps no later ones in memory.
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

	/** Adds a value at the front. */
	addFirst(one: One): QueueNode<One> {
		const first = this.#first;
		if (first === undefined) return this.add(one);
		const node: QueueNode<One> = { one, nth: first.nth - 1, before: undefined, behind: first, isThere: true };
		first.before = node;
		this.#first = node;
		this.#size += 1;
		return node;
	}

	/** Removes a node. False if it was removed before. */
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

	/** Nodes may be removed during the iteration. Added nodes are visited too. */
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
