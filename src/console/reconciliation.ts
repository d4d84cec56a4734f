import type { Clock } from "../base/clock.ts";
import { newId } from "../base/id.ts";
import type { Log } from "../base/log.ts";
import type { Hot } from "../db/hot.ts";
import { createHot } from "../db/hot.ts";
import type { Check } from "../ledger/reconcile.ts";
import { reconcile } from "../ledger/reconcile.ts";

export interface ReconciliationRun {
	readonly id: string;
	readonly atMs: number;
	readonly ok: boolean;
	readonly by: string;
	readonly checks: readonly Check[];
}

const RUNS_SHOWN = 20;
/** It reads everything; the server itself ends a statement after half a minute. */
const DEADLINE_MS = 60_000;

interface Row {
	id: string;
	at: Date;
	ok: boolean;
	by: string;
	checks: readonly Check[];
}

/** Checks the books and writes down what was found. */
export async function runReconciliation(
	deps: { hot: Hot; clock: Clock; log: Log; databaseUrl: string },
	by: string,
): Promise<ReconciliationRun> {
	const own = createHot(deps, {
		url: deps.databaseUrl,
		connectionsMax: 1,
		statementDeadlineMs: DEADLINE_MS,
		applicationName: "tollgate reconciliation",
	});
	try {
		const { ok, checks } = await reconcile(own);
		if (!ok) deps.log.error("the books do not add up", { checks: checks.filter((check) => !check.ok) });
		const [row] = await deps.hot<Row>`
			insert into reconciliation_run (id, ok, by, checks) values (${newId("rec")}, ${ok}, ${by}, ${JSON.stringify(checks)}::text::jsonb)
			returning id, at, ok, by, checks`;
		if (row === undefined) throw new Error("an inserted row is returned");
		return runOf(row);
	} finally {
		await own.end();
	}
}

/** Newest first. */
export async function listReconciliations(
	hot: Hot,
): Promise<{ runs: ReconciliationRun[]; greenSinceMs: number | null }> {
	const rows =
		await hot<Row>`select id, at, ok, by, checks from reconciliation_run order by id desc limit ${RUNS_SHOWN}`;
	return { runs: rows.map(runOf), greenSinceMs: await greenSince(hot) };
}

export async function lastReconciliation(
	hot: Hot,
): Promise<{ ok: boolean; atMs: number; greenSinceMs: number | null } | null> {
	const [row] = await hot<Row>`select id, at, ok, by, checks from reconciliation_run order by id desc limit 1`;
	if (row === undefined) return null;
	return { ok: row.ok, atMs: row.at.getTime(), greenSinceMs: await greenSince(hot) };
}

/** The first good run after the last bad one; null if the last one was bad or there is none. */
async function greenSince(hot: Hot): Promise<number | null> {
	const [row] = await hot<{ since: Date | null }>`
		select min(at) as since from reconciliation_run
		where ok and id > coalesce((select max(id) from reconciliation_run where not ok), '')`;
	return row?.since?.getTime() ?? null;
}

function runOf(row: Row): ReconciliationRun {
	return { id: row.id, atMs: row.at.getTime(), ok: row.ok, by: row.by, checks: row.checks };
}
