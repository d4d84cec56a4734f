import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Reconciliation } from "./reconcile.ts";

/** One check of the books, as it is written down. */
export interface BooksRun extends Reconciliation {
	readonly id: string;
	readonly atMs: number;
	/** A user's id, `start` or `timer`. */
	readonly by: string;
}

/** Where runs are written down, for all instances. */
export interface BooksHistory {
	add(result: Reconciliation, by: string): Promise<BooksRun>;
	/** The newest run of the last `withinMs`, whichever instance made it. */
	newest(withinMs: number): Promise<BooksRun | undefined>;
}

/** Checks the books at the start and again and again. Every run goes into the history and is what `last` says. */
export interface Reconciler {
	/** The newest result; undefined before the first. */
	last(): Pick<BooksRun, "ok" | "atMs"> | undefined;
	/**
	 * Looks at the books as they are after the call. Never twice at once: who asks while a run is under way shares the
	 * one after it with all others who do.
	 */
	run(by: string): Promise<BooksRun>;
	stop(): void;
}

/** The checks read every budget: once in about this time by one instance, whose word the others take. */
const INTERVAL_MS = 15 * 60_000;
/** Instances that start at the same moment drift apart, or each would look before another has written down what it found. */
const INTERVAL_SPREAD = 0.25;
const START_SPREAD_MS = 1_000;
/** Less than the interval, so that one's own last run is not taken for another's. */
const FRESH_MS = INTERVAL_MS - 60_000;
/** At its start an instance looks for itself, unless others that start with it, as workers do, just did. */
const FRESH_AT_START_MS = 30_000;
const RETRY_MS = 60_000;

export function createReconciler(deps: {
	check: () => Promise<Reconciliation>;
	history: BooksHistory;
	clock: Clock;
	log: Log;
	/** From 0 to less than 1. */
	random?: () => number;
}): Reconciler {
	const { check, history, clock, log, random = Math.random } = deps;
	let last: Pick<BooksRun, "ok" | "atMs"> | undefined;
	let running: Promise<BooksRun> | undefined;
	let following: Promise<BooksRun> | undefined;
	let stopped = false;
	let cancel = clock.after(random() * START_SPREAD_MS, () => tick("start", FRESH_AT_START_MS));

	async function lookNow(by: string): Promise<BooksRun> {
		const result = await check();
		// Readiness and metrics hear of it even if it cannot be written down.
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
		// It is yet to start, also in the moment in which the one before it has ended.
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
				// A check may take minutes, and no stop waits for it: what ends then says nothing of the books.
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
		last: () => last,
		run,
		stop() {
			stopped = true;
			cancel();
		},
	};
}
