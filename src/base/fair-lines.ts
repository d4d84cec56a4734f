import { LinkedQueue, type QueueNode } from "./linked-queue.ts";
import { SlotMap } from "./slot-map.ts";

interface Line<Waiter> {
	readonly owner: string;
	readonly waiters: LinkedQueue<Waiter>;
	/** Time of the owner's last service as a counter: among owners with equally many slots, the lowest is served next. */
	turn: number;
}

/** Waiting callers, with one queue per owner. The owner with the fewest slots (`held`) is served first. */
export function createFairLines<Waiter>(ownerOf: (waiter: Waiter) => string, held: (owner: string) => number) {
	/** Queues by owner. None is empty. */
	const lines = new SlotMap<Line<Waiter>>();
	let size = 0;
	let turns = 0;

	function lineOf(owner: string): Line<Waiter> {
		const line = lines.get(owner);
		if (line !== undefined) return line;
		const begun = { owner, waiters: new LinkedQueue<Waiter>(), turn: turns++ };
		lines.set(owner, begun);
		return begun;
	}

	return {
		/** Adds a waiter at the end of its owner's queue. */
		add(waiter: Waiter): QueueNode<Waiter> {
			size += 1;
			return lineOf(ownerOf(waiter)).waiters.add(waiter);
		},
		/** Adds a waiter at the front of its owner's queue. */
		addFirst(waiter: Waiter): QueueNode<Waiter> {
			size += 1;
			return lineOf(ownerOf(waiter)).waiters.addFirst(waiter);
		},
		delete(node: QueueNode<Waiter>) {
			const owner = ownerOf(node.one);
			const line = lines.get(owner);
			if (line === undefined || !line.waiters.delete(node)) return;
			size -= 1;
			if (line.waiters.size === 0) lines.delete(owner);
		},
		/** Call it when the owner got or returned a slot: other owners with equally many slots are served first. */
		goBehind(owner: string) {
			const line = lines.get(owner);
			if (line !== undefined) line.turn = turns++;
		},
		size: (): number => size,
		/** The waiter that is served next. */
		first(): Waiter | undefined {
			let best: Line<Waiter> | undefined;
			let least = 0;
			for (const line of lines) {
				const places = held(line.owner);
				if (best !== undefined && (places > least || (places === least && line.turn > best.turn))) continue;
				best = line;
				least = places;
			}
			return best?.waiters.first;
		},
		/** Queues by fewest slots, then by longest wait. A copy, because queues may change during the iteration. */
		inTurn(): Iterable<Iterable<Waiter>> {
			if (lines.size === 1) return Array.from(lines, ({ waiters }) => waiters);
			const ranked = Array.from(lines, (line) => ({ line, places: held(line.owner) }));
			ranked.sort((a, b) => a.places - b.places || a.line.turn - b.line.turn);
			return ranked.map(({ line }) => line.waiters);
		},
		/** Last waiter of the longest queue, if this owner's queue would be shorter even with one more waiter. */
		displaced(owner: string): Waiter | undefined {
			// With one waiter in each queue, none is displaced. This saves a loop over perhaps thousands of owners.
			if (lines.size === size) return undefined;
			let longest: Line<Waiter> | undefined;
			for (const line of lines) {
				const more = line.waiters.size - (longest?.waiters.size ?? 0);
				// Of equally long queues, takes the one that would be served first.
				if (more > 0 || (more === 0 && longest !== undefined && line.turn < longest.turn)) longest = line;
			}
			const own = lines.get(owner)?.waiters.size ?? 0;
			return longest !== undefined && longest.waiters.size > own + 1 ? longest.waiters.last : undefined;
		},
	};
}
