import { LinkedQueue, type QueueNode } from "./linked-queue.ts";
import { SlotMap } from "./slot-map.ts";

interface Line<Waiter> {
	readonly owner: string;
	readonly waiters: LinkedQueue<Waiter>;
	/** A lower turn has waited longer. */
	turn: number;
}

/** Waiting requests, one line per owner, first in, first out. The owner that holds least (`held`) comes first. */
export function createFairLines<Waiter>(ownerOf: (waiter: Waiter) => string, held: (owner: string) => number) {
	/** No line is empty. */
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
		/** Adds to the end of its owner's line. */
		add(waiter: Waiter): QueueNode<Waiter> {
			size += 1;
			return lineOf(ownerOf(waiter)).waiters.add(waiter);
		},
		/** Adds before its owner's other waiters. */
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
		/** The owner just got or returned a place: others with as many places come first. */
		goBehind(owner: string) {
			const line = lines.get(owner);
			if (line !== undefined) line.turn = turns++;
		},
		size: (): number => size,
		/** The next waiter in turn. */
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
		/** Fewest places first, then longest without a place. A copy: lines may change during the iteration. */
		inTurn(): Iterable<Iterable<Waiter>> {
			if (lines.size === 1) return Array.from(lines, ({ waiters }) => waiters);
			const ranked = Array.from(lines, (line) => ({ line, places: held(line.owner) }));
			ranked.sort((a, b) => a.places - b.places || a.line.turn - b.line.turn);
			return ranked.map(({ line }) => line.waiters);
		},
		/** The last waiter of the longest line, if that line is longer than this owner's would be with one more. */
		displaced(owner: string): Waiter | undefined {
			let longest: Line<Waiter> | undefined;
			for (const line of lines) {
				const more = line.waiters.size - (longest?.waiters.size ?? 0);
				// Of equally long lines, the one whose turn is first.
				if (more > 0 || (more === 0 && longest !== undefined && line.turn < longest.turn)) longest = line;
			}
			if (longest === undefined) return undefined;
			return longest.waiters.size <= (lines.get(owner)?.waiters.size ?? 0) + 1 ? undefined : longest.waiters.last;
		},
	};
}
