import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Reconciliation } from "./reconcile.ts";

/** One recorded check of the books. */
export interface BooksRun extends Reconciliation {
	readonly id: string;
	readonly atMs: number;
	/** A user's id, `start` or `timer`. */
	readonly by: string;
}

/** Records the runs of all instances. */
export interface BooksHistory {
	add(result: Reconciliation, by: string): Promise<BooksRun>;
	/** The newest run of the last `withinMs`, by any instance. */
	newest(withinMs: number): Promise<BooksRun | undefined>;
}

export type Reconciler = ReturnType<typeof createReconciler>;

/** The checks read every budget: one instance runs them about this often, and the others use its result. */
const INTERVAL_MS = 15 * 60_000;
/** Instances that start together drift apart; otherwise each would check before another has recorded its result. */
const INTERVAL_SPREAD = 0.25;
const START_SPREAD_MS = 1_000;
/** Less than the interval, so that an instance's own last run does not count as another's. */
const FRESH_MS = INTERVAL_MS - 60_000;
/** A starting instance checks unless another one, such as a fellow worker, just did. */
const FRESH_AT_START_MS = 30_000;
const RETRY_MS = 60_000;

/** Checks the books at the start and periodically. Every run is recorded, and `last` returns it. */
export function createReconciler(deps: {
	check: () => Promise<Reconciliation>;
	history: BooksHistory;
	clock: Clock;
	log: Log;
	/** From 0 to less than 1. */
	random?: () => number;
}) {
	const { check, history, clock, log, random = Math.random } = deps;
	let last: Pick<BooksRun, "ok" | "atMs"> | undefined;
	let running: Promise<BooksRun> | undefined;
	let following: Promise<BooksRun> | undefined;
	let stopped = false;
	let cancel = clock.after(random() * START_SPREAD_MS, () => tick("start", FRESH_AT_START_MS));

	async function lookNow(by: string): Promise<BooksRun> {
		const result = await check();
		// Readiness and metrics receive the result even if it cannot be recorded.
		last = { ok: result.ok, atMs: clock.wallMs() };
		const broken = result.checks.filter(({ ok }) => !ok);
		if (broken.length > 0) log.error("the books are broken", { broken });
		return history.add(result, by);
	}

	function start(by: string): Promise<BooksRun> {
		running = lookNow(by).finally(() => {
			running = undefined;
		});
		return running;
	}

	function run(by: string): Promise<BooksRun> {
		// The next run has yet to start, even in the moment in which the current one ends.
		if (following !== undefined) return following;
		if (running === undefined) return start(by);
		const afterThis = () => {
			following = undefined;
			return start(by);
		};
		following = running.then(afterThis, afterThis);
		return following;
	}

	async function look(by: string, freshMs: number): Promise<void> {
		const found = await history.newest(freshMs);
		if (found !== undefined && running === undefined) last = found;
		else await run(by);
	}

	function tick(by: string, freshMs: number): void {
		look(by, freshMs).then(
			() => schedule(INTERVAL_MS * (1 + random() * INTERVAL_SPREAD)),
			(error) => {
				// A check may take minutes, and a stop does not wait for it: its failure says nothing about the books.
				if (stopped) return;
				log.warn("the books could not be checked", { error });
				schedule(RETRY_MS);
			},
		);
	}

	function schedule(delayMs: number): void {
		if (!stopped) cancel = clock.after(delayMs, () => tick("timer", FRESH_MS));
	}

	return {
		/** The newest result; undefined before the first. */
		last: () => last,
		/** Checks the books as they are after the call, never twice at once. Callers during a run share the next one. */
		run,
		stop() {
			stopped = true;
			cancel();
		},
	};
}
