import type { Clock } from "../base/clock.ts";
import { newId } from "../base/id.ts";
import type { Log } from "../base/log.ts";
import { inEnglish, type Text } from "../base/translate.ts";
import type { Statements } from "../db/statements.ts";

/** A row of `reconciliation_run`. */
export interface BooksRow {
	readonly id: string;
	readonly at: Date;
	readonly ok: boolean;
	readonly by: string;
	readonly checks: readonly Check[];
}

/** Stores the checks of the books made by all processes. */
export function createBooksHistory(statements: Statements) {
	return {
		async add({ ok, checks }: Reconciliation, by: string): Promise<BooksRun> {
			const [row] = await statements<BooksRow>`
				insert into reconciliation_run (id, ok, by, checks) values (${newId("rec")}, ${ok}, ${by}, ${JSON.stringify(checks)}::text::jsonb)
				returning id, at, ok, by, checks`;
			if (row === undefined) throw new Error("an inserted row is returned");
			return booksRunOf(row);
		},
		/** The newest run of the last `withinMs`, by any instance. */
		async newest(withinMs: number): Promise<BooksRun | undefined> {
			// A run dated in the future was made before the clock was set back; it would suppress checks until then.
			const [row] = await statements<BooksRow>`
				select id, at, ok, by, checks from reconciliation_run
				where at > clock_timestamp() - make_interval(secs => ${withinMs / 1000}::double precision) and at <= clock_timestamp()
				order by id desc limit 1`;
			return row === undefined ? undefined : booksRunOf(row);
		},
	};
}

/** The newest check of the books, and its age by the clock that dated it. */
export async function lastBooksCheck(statements: Statements): Promise<{ ok: boolean; ageMs: number } | undefined> {
	const [row] = await statements<{ ok: boolean; ageMs: number }>`
		select ok, extract(epoch from clock_timestamp() - at)::double precision * 1000 as "ageMs"
		from reconciliation_run where at <= clock_timestamp() order by id desc limit 1`;
	return row;
}

export function booksRunOf(row: BooksRow): BooksRun {
	return { id: row.id, atMs: row.at.getTime(), ok: row.ok, by: row.by, checks: row.checks };
}

const KEPT_DAYS = 400;
const FORGET_ROWS = 1_000;

/** Deletes runs older than 400 days, except the one since which all runs were good. Looks at 1,000 runs at most. */
export async function forgetOldRuns(statements: Statements): Promise<void> {
	await statements`
		delete from reconciliation_run r using (
			select o.id, o.at from reconciliation_run o order by o.id limit ${FORGET_ROWS}::integer
		) old
		where r.id = old.id and old.at < clock_timestamp() - make_interval(days => ${KEPT_DAYS}::integer) and r.id is distinct from (
			select g.id from reconciliation_run g
			where g.ok and g.id > coalesce((select max(b.id) from reconciliation_run b where not b.ok), '') order by g.id limit 1)`;
}

/** One invariant of the books and how many rows break it. */
export interface Check {
	readonly name: string;
	readonly ok: boolean;
	readonly detail: string;
	/** The same as `detail`; runs of earlier versions have none. */
	readonly text?: Text;
}

interface Reconciliation {
	readonly ok: boolean;
	readonly checks: readonly Check[];
}

const HOLDS: Text = { id: "passed" };

interface CheckRow {
	name: string;
	broken: string;
	example: string | null;
}

/**
 * Checks the books in Postgres: properties of the data, whatever code wrote it, in one snapshot that running traffic
 * does not disturb. Sealed days count by their sums (`seals.ts` reads their rows again).
 */
export async function reconcile(statements: Statements): Promise<Reconciliation> {
	const rows = await statements<CheckRow>`select name, broken, example from books_check()`;
	const checks = rows.map(({ name, broken: count, example }) => {
		if (Number(count) === 0) return { name, ok: true, detail: HOLDS.id, text: HOLDS };
		const [place = "", problem] = (example ?? "").split("\n");
		const text: Text =
			problem === undefined
				? { id: "failed {count} times, first at {place}", values: { count, place } }
				: { id: "failed {count} times, first at {place}: {problem}", values: { count, place, problem } };
		return { name, ok: false, detail: inEnglish(text), text };
	});
	return { ok: checks.every((check) => check.ok), checks };
}

export interface BooksRun extends Reconciliation {
	readonly id: string;
	readonly atMs: number;
	/** A user's id, `start` or `timer`. */
	readonly by: string;
}

export type BooksHistory = ReturnType<typeof createBooksHistory>;
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
