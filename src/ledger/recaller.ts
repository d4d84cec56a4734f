import type { Clock } from "../base/clock.ts";
import type { LedgerStore } from "./store.ts";

export type Recaller = ReturnType<typeof createRecaller>;

/** Minimum milliseconds between two recall statements, for any number of budgets. */
const INTERVAL_MS = 20;

interface Asked {
	readonly budget: string;
	resolve(ticket: number): void;
	reject(error: unknown): void;
}

/** Recalls idle credit from other instances. Concurrent recalls share one statement. */
export function createRecaller({ store, clock }: { store: LedgerStore; clock: Clock }) {
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
		/** Recalls idle credit of a budget; resolves with the recall's number. Rejects if Postgres does not answer. */
		recall: (budget: string) =>
			new Promise<number>((resolve, reject) => {
				asked.push({ budget, resolve, reject });
				schedule();
			}),
	};
}
