import type { AcquireOptions, Ticket } from "./ticket.ts";

/** A request that waits for a place. */
export interface Waiter {
	readonly options: AcquireOptions;
	readonly serve: (ticket: Ticket) => void;
	readonly refuse: (fault: Error) => void;
}

/** Who waits for a place of one model: a line for each account, first in, first out. */
export interface WaitingLines {
	/** At the end of its account's line. */
	add(waiter: Waiter): void;
	delete(waiter: Waiter): void;
	/** The account has had a place just now: others who hold as many come first. */
	goBehind(accountId: string): void;
	size(): number;
	/**
	 * The lines in the order in which they are asked: who holds the fewest places first, among equals who has had
	 * none for longest. A copy, so that lines may change while it is gone through.
	 */
	inTurn(): Iterable<ReadonlySet<Waiter>>;
	/** The last of the longest line, if that line is longer than this account's would be with one more. */
	displaced(accountId: string): Waiter | undefined;
}

export function createWaitingLines(held: (accountId: string) => number): WaitingLines {
	/** No line is empty. */
	const lines = new Map<string, Set<Waiter>>();
	let size = 0;

	return {
		add(waiter) {
			const { accountId } = waiter.options;
			const line = lines.get(accountId);
			if (line === undefined) lines.set(accountId, new Set([waiter]));
			else line.add(waiter);
			size += 1;
		},
		delete(waiter) {
			const { accountId } = waiter.options;
			const line = lines.get(accountId);
			if (line === undefined || !line.delete(waiter)) return;
			size -= 1;
			if (line.size === 0) lines.delete(accountId);
		},
		goBehind(accountId) {
			const line = lines.get(accountId);
			if (line === undefined) return;
			lines.delete(accountId);
			lines.set(accountId, line);
		},
		size: () => size,
		inTurn() {
			if (lines.size === 1) return [...lines.values()];
			const ranked = Array.from(lines, ([accountId, line]) => ({ line, places: held(accountId) }));
			return ranked.sort((a, b) => a.places - b.places).map(({ line }) => line);
		},
		displaced(accountId) {
			let longest: Set<Waiter> | undefined;
			for (const line of lines.values()) if (line.size > (longest?.size ?? 0)) longest = line;
			if (longest === undefined || longest.size <= (lines.get(accountId)?.size ?? 0) + 1) return undefined;
			return [...longest].at(-1);
		},
	};
}
