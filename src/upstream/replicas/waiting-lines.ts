import { LinkedQueue, type QueueNode } from "../../base/linked-queue.ts";
import { SlotMap } from "../../base/slot-map.ts";
import type { AcquireOptions, Ticket } from "./ticket.ts";

/** A request that waits for a place. */
export interface Waiter {
	readonly options: AcquireOptions;
	readonly serve: (ticket: Ticket) => void;
	readonly refuse: (fault: Error) => void;
}

interface AccountLine {
	readonly accountId: string;
	readonly waiters: LinkedQueue<Waiter>;
	/** A lower turn has waited longer for a place. */
	turn: number;
}

/** The requests that wait for a place of one model: one line per account, first in, first out. */
export function createWaitingLines(held: (accountId: string) => number) {
	/** No line is empty. */
	const lines = new SlotMap<AccountLine>();
	let size = 0;
	let turns = 0;

	function lineOf(accountId: string): AccountLine {
		const line = lines.get(accountId);
		if (line !== undefined) return line;
		const begun = { accountId, waiters: new LinkedQueue<Waiter>(), turn: turns++ };
		lines.set(accountId, begun);
		return begun;
	}

	return {
		/** Adds to the end of its account's line. */
		add(waiter: Waiter): QueueNode<Waiter> {
			size += 1;
			return lineOf(waiter.options.accountId).waiters.add(waiter);
		},
		delete(node: QueueNode<Waiter>) {
			const { accountId } = node.one.options;
			const line = lines.get(accountId);
			if (line === undefined || !line.waiters.delete(node)) return;
			size -= 1;
			if (line.waiters.size === 0) lines.delete(accountId);
		},
		/** The account just got a place: others with as many places come first. */
		goBehind(accountId: string) {
			const line = lines.get(accountId);
			if (line !== undefined) line.turn = turns++;
		},
		size: (): number => size,
		/** Fewest places first, then longest without a place. A copy: lines may change during the iteration. */
		inTurn(): Iterable<Iterable<Waiter>> {
			if (lines.size === 1) return Array.from(lines, ({ waiters }) => waiters);
			const ranked = Array.from(lines, (line) => ({ line, places: held(line.accountId) }));
			ranked.sort((a, b) => a.places - b.places || a.line.turn - b.line.turn);
			return ranked.map(({ line }) => line.waiters);
		},
		/** The last request of the longest line, if that line is longer than this account's would be with one more. */
		displaced(accountId: string): Waiter | undefined {
			let longest: AccountLine | undefined;
			for (const line of lines) {
				const more = line.waiters.size - (longest?.waiters.size ?? 0);
				// Of equally long lines, the one whose turn is first.
				if (more > 0 || (more === 0 && longest !== undefined && line.turn < longest.turn)) longest = line;
			}
			if (longest === undefined) return undefined;
			return longest.waiters.size <= (lines.get(accountId)?.waiters.size ?? 0) + 1 ? undefined : longest.waiters.last;
		},
	};
}
