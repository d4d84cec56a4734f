import { type Clock, withDeadline } from "../../base/clock.ts";
import type { Language } from "../../base/language.ts";
import { translate } from "../../base/translate.ts";
import { readLostActs } from "../../cluster/lost-acts.ts";
import { type Statements, toView } from "../../db/statements.ts";
import { type Connection, IDLE_TIMEOUT_S } from "../../gateway/connection.ts";
import { type BooksRow, type BooksRun, parseBooksRun, type Reconciler } from "../../ledger/reconciler.ts";
import type { NanoUsd } from "../../money/nano-usd.ts";
import { ConsoleError } from "../console-error.ts";

const RUNS_SHOWN = 20;
/** Longest wait of a page in seconds; a longer check continues after the response. */
const WAIT_S = 60;
const SILENCE_S = WAIT_S + 10;

/** Checks the books. Fault `service_unavailable` after WAIT_S: the result appears in the list later. */
export async function checkBooks(
	{ books, clock }: { books: Pick<Reconciler, "run">; clock: Clock },
	connection: Connection,
	userId: string,
): Promise<BooksRun> {
	const late = () =>
		new ConsoleError(
			"service_unavailable",
			"The check takes longer than a minute. Its result will appear in the list.",
			{ retryAfterS: WAIT_S },
		);
	connection.setIdleTimeout(SILENCE_S);
	try {
		return await withDeadline(clock, books.run(userId), WAIT_S * 1000, late);
	} finally {
		connection.setIdleTimeout(IDLE_TIMEOUT_S);
	}
}

/** Settlements that were refused and not charged, because the database no longer had records of their time. */
export interface RefusedSettlements {
	/** Includes repetitions of settlements, most of which had been charged before. */
	readonly requests: number;
	readonly chargedNanoUsd: NanoUsd;
	readonly atMs: number;
	readonly instance: string;
}

/** Checks of the books, newest first. `by` is an operator's address, `start` or `timer`. */
export async function listReconciliations(statements: Statements, language: Language) {
	const rows = await statements<BooksRow>`
			select r.id, r.at, r.ok, coalesce(u.email, r.by) as by, r.checks
			from reconciliation_run r left join console_user u on u.id = r.by order by r.id desc limit ${RUNS_SHOWN}`;
	const [greenSinceMs, refused, lostActs] = await Promise.all([
		greenSince(statements),
		refusedSettlements(statements),
		readLostActs(statements),
	]);
	return { runs: rows.map((row) => translateRun(parseBooksRun(row), language)), greenSinceMs, refused, lostActs };
}

export function translateRun(run: BooksRun, language: Language): BooksRun {
	const checks = run.checks.map(({ name, ok, detail, text }) => ({
		...{ ok, name: translate(language, { id: name }) },
		detail: text === undefined ? detail : translate(language, text),
	}));
	return { ...run, checks };
}

async function refusedSettlements(statements: Statements): Promise<RefusedSettlements | null> {
	const [row] = await statements<object>`
		select (sum(requests) over ())::float8 as requests, sum(charged_nano_usd) over () as charged_nano_usd, at, instance_id as instance
		from refused_settlement order by at desc, instance_id limit 1`;
	return row === undefined ? null : toView<RefusedSettlements>(row);
}

export async function lastReconciliation(statements: Statements) {
	const [row] =
		await statements<BooksRow>`select id, at, ok, by, checks from reconciliation_run order by id desc limit 1`;
	if (row === undefined) return null;
	return { ok: row.ok, atMs: row.at.getTime(), greenSinceMs: await greenSince(statements) };
}

/** Time of the first passed check after the last failed one; null if the latest check failed or none ran. */
async function greenSince(statements: Statements): Promise<number | null> {
	const [row] = await statements<{ since: Date }>`
		select at as since from reconciliation_run
		where ok and id > coalesce((select max(id) from reconciliation_run where not ok), '') order by id limit 1`;
	return row?.since?.getTime() ?? null;
}
