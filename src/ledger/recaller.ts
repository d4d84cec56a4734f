import type { Clock } from "../base/clock.ts";
import type { LedgerStore } from "./store.ts";

/** Asks the other instances for what lies idle; what is asked for in the same moment goes out in one statement. */
export interface Recaller {
	/** Gives the ticket whose answers count, of a recall that was sent after this call. Rejects if it was not answered. */
	recall(budget: string): Promise<number>;
}

/** However many budgets are short, the others hear of it so often at most. */
const INTERVAL_MS = 20;

interface Asked {
	readonly budget: string;
	resolve(ticket: number): void;
	reject(error: unknown): void;
}

export function createRecaller(deps: { store: LedgerStore; clock: Clock }): Recaller {
	const { store, clock } = deps;
	let asked: Asked[] = [];
	let sending = false;
	let sentMs = Number.NEGATIVE_INFINITY;

	function schedule(): void {
		if (sending || asked.length === 0) return;
		sending = true;
		clock.after(Math.max(0, sentMs + INTERVAL_MS - clock.monotonicMs()), send);
	}

	function send(): void {
		const batch = asked;
		asked = [];
		sentMs = clock.monotonicMs();
		store
			.recall([...new Set(batch.map(({ budget }) => budget))])
			.then(
				(ticket) => {
					for (const { resolve } of batch) resolve(ticket);
				},
				(error) => {
					for (const { reject } of batch) reject(error);
				},
			)
			.finally(() => {
				sending = false;
				schedule();
			});
	}

	return {
		recall: (budget) =>
			new Promise((resolve, reject) => {
				asked.push({ budget, resolve, reject });
				schedule();
			}),
	};
}
