import type { Clock } from "../base/clock.ts";
import { newId } from "../base/id.ts";
import type { Log } from "../base/log.ts";
import { englishText, type Text } from "../base/translate.ts";
import type { Statements } from "../db/statements.ts";

export interface BooksRow {
	readonly id: string;
	readonly at: Date;
	readonly ok: boolean;
	readonly by: string;
	readonly checks: readonly BooksCheck[];
}

/** Stores the results of ledger checks in Postgres, for all processes. */
export function createBooksHistory(statements: Statements) {
	return {
		async add({ ok, checks }: Reconciliation, by: string): Promise<BooksRun> {
			const [row] = await statements<BooksRow>`
				insert into reconciliation_run (id, ok, by, checks) values (${newId("rec")}, ${ok}, ${by}, ${JSON.stringify(checks)}::text::jsonb)
				returning id, at, ok, by, checks`;
			if (row === undefined) throw new Error("an inserted row is returned");
			return parseBooksRun(row);
		},
		/** Newest result that is at most `withinMs` old, of any instance. */
		async newest(withinMs: number): Promise<BooksRun | undefined> {
			// Ignores results dated in the future: written before a clock was set back, they would suppress all checks.
			const [row] = await statements<BooksRow>`
				select id, at, ok, by, checks from reconciliation_run
				where at > clock_timestamp() - make_interval(secs => ${withinMs / 1000}::double precision) and at <= clock_timestamp()
				order by id desc limit 1`;
			return row === undefined ? undefined : parseBooksRun(row);
		},
	};
}

/** Newest result, and its age by the clock that dated it. */
export async function lastBooksCheck(statements: Statements): Promise<{ ok: boolean; ageMs: number } | undefined> {
	const [row] = await statements<{ ok: boolean; ageMs: number }>`
		select ok, extract(epoch from clock_timestamp() - at)::double precision * 1000 as "ageMs"
		from reconciliation_run where at <= clock_timestamp() order by id desc limit 1`;
	return row;
}

export function parseBooksRun(row: BooksRow): BooksRun {
	return { id: row.id, atMs: row.at.getTime(), ok: row.ok, by: row.by, checks: row.checks };
}

const KEPT_DAYS = 400;
const FORGET_ROWS = 1_000;

/** Deletes results older than 400 days, at most 1,000 a call. Keeps the first since the last failed check. */
export async function deleteOldBooksRuns(statements: Statements): Promise<void> {
	await statements`
		delete from reconciliation_run r using (
			select o.id, o.at from reconciliation_run o order by o.id limit ${FORGET_ROWS}::integer
		) old
		where r.id = old.id and old.at < clock_timestamp() - make_interval(days => ${KEPT_DAYS}::integer) and r.id is distinct from (
			select g.id from reconciliation_run g
			where g.ok and g.id > coalesce((select max(b.id) from reconciliation_run b where not b.ok), '') order by g.id limit 1)`;
}

/** An invariant of the books and the number of rows that violate it. */
export interface BooksCheck {
	readonly name: string;
	readonly ok: boolean;
	readonly detail: string;
	/** `detail` as a translatable text; absent in results that an earlier version stored. */
	readonly text?: Text;
}

interface Reconciliation {
	readonly ok: boolean;
	readonly checks: readonly BooksCheck[];
}

const HOLDS: Text = { id: "passed" };

interface CheckRow {
	name: string;
	broken: string;
	example: string | null;
}

/**
 * Checks the invariants of the books in one database snapshot, so that traffic during the check does not disturb it.
 * Uses the sums of sealed days without reading their rows; `seals.ts` verifies those.
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
		return { name, ok: false, detail: englishText(text), text };
	});
	return { ok: checks.every((check) => check.ok), checks };
}

export interface BooksRun extends Reconciliation {
	readonly id: string;
	readonly atMs: number;
	/** What started the check: a user's id, `start` or `timer`. */
	readonly by: string;
}

export type BooksHistory = ReturnType<typeof createBooksHistory>;
export type Reconciler = ReturnType<typeof createReconciler>;

/** Milliseconds between checks. A check reads every budget, so one instance runs it and the others use its result. */
const INTERVAL_MS = 15 * 60_000;
/** Random part of the interval, so that instances that started together do not check at the same time. */
const INTERVAL_SPREAD = 0.25;
const START_SPREAD_MS = 1_000;
/** Milliseconds for which another instance's result replaces a check of this instance. */
const FRESH_MS = INTERVAL_MS - 60_000;
/** Milliseconds for which another result replaces the check at a start: workers that start together check once. */
const FRESH_AT_START_MS = 30_000;
const RETRY_MS = 60_000;

/** Checks the books at the start and periodically. Stores every result; `last` returns the newest. */
export function createReconciler(deps: {
	check: () => Promise<Reconciliation>;
	history: BooksHistory;
	clock: Clock;
	log: Log;
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
		// Set before the result is stored, so that readiness and metrics show it even if storing fails.
		last = { ok: result.ok, atMs: clock.wallMs() };
		const broken = result.checks.filter(({ ok }) => !ok);
		if (broken.length > 0) log.error("the books are broken", { broken });
		return history.add(result, by);
	}

	function start(by: string): Promise<BooksRun> {
		running = lookNow(by).finally(() => (running = undefined));
		return running;
	}

	function run(by: string): Promise<BooksRun> {
		// The waiting check has not started, even if the current one is just ending, so it sees all rows until now.
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
				// A stopping process closes its connections without waiting for the check, so a failure is expected then.
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
		/** The newest result; undefined before the first check ends. */
		last: () => last,
		/** Checks the books as they are after the call. Callers that arrive during a check share the next check. */
		run,
		stop() {
			stopped = true;
			cancel();
		},
	};
}
