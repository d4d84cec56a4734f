import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { LedgerStore } from "./store.ts";

/** Minimum milliseconds between queries for recalls, because one query finds all recalls so far. */
const LOOK_INTERVAL_MS = 10;
/** Milliseconds between queries if no notification arrives, because notifications can be lost. */
const POLL_MS = 1_000;

/** Answers recalls of other instances. Runs apart from the heartbeat, which must not be delayed by an answer. */
export function createRecallAnswers(deps: {
	store: Pick<LedgerStore, "recalls">;
	/** Returns idle credit; resolves when Postgres has stored the returns and the answer. */
	answer(budget: string, ticket: number): Promise<void>;
	clock: Clock;
	log: Log;
}) {
	const { store, clock, log } = deps;
	/** Budgets whose credit is being returned, each separately, so that a locked row delays only one answer. */
	const answering = new Set<string>();
	let looking = false;
	let again = false;
	let lookedMs = Number.NEGATIVE_INFINITY;
	let stopped = false;
	let cancelPoll = clock.after(POLL_MS, poll);

	function hear(): void {
		if (stopped) return;
		if (looking) {
			again = true;
			return;
		}
		looking = true;
		clock.after(Math.max(0, lookedMs + LOOK_INTERVAL_MS - clock.monotonicMs()), look);
	}

	function look(): void {
		again = false;
		lookedMs = clock.monotonicMs();
		lookOnce()
			.catch((error) => log.debug("recalls of idle credit could not be read", { error }))
			.finally(() => {
				looking = false;
				if (again) hear();
			});
	}

	async function lookOnce(): Promise<void> {
		if (stopped) return;
		for (const { budget, ticket } of await store.recalls()) {
			if (answering.has(budget)) continue;
			answering.add(budget);
			void deps.answer(budget, ticket).finally(() => {
				answering.delete(budget);
				// Recalls of this budget that arrived during its answer were skipped, so another query must find them.
				hear();
			});
		}
	}

	function poll(): void {
		if (stopped) return;
		cancelPoll = clock.after(POLL_MS, poll);
		hear();
	}

	return {
		/** Looks for recalls now. Call it when another instance announced a recall, or after a reconnection. */
		hear,
		stop() {
			stopped = true;
			cancelPoll();
		},
	};
}
