/** The floor of settlements: rows of the same length with their primary key alone, and the sums of budgets. No log, no indexes, no leases, and no row that is known already. */
import { FLUSH_BATCH_MAX } from "../../src/ledger/epoch.ts";
import type { Figures } from "./figures.ts";
import type { BenchDatabase } from "./product.ts";

const BUDGETS = 100;
const TEXT = "x".repeat(24);

/** Batches as large as the product's, one after the other, each of them durable before the next: as many rows a second as Postgres takes. */
export async function settleFloor(
	{ sql }: BenchDatabase,
	figures: Figures,
	rows: number,
	rounds: number,
): Promise<void> {
	await sql`create table floor_event (id uuid primary key, account text, key text, model text, replica text,
		prompt bigint, completion bigint, charge bigint, began timestamptz, ended timestamptz)`;
	await sql`create table floor_budget (budget int primary key, used bigint)`;
	await sql`insert into floor_budget select n, 0 from generate_series(0, ${BUDGETS - 1}) n`;
	const of = <Value>(value: (at: number) => Value) => Array.from({ length: FLUSH_BATCH_MAX }, (_, at) => value(at));
	const [texts, counts, times] = [of(() => TEXT), of((at) => at), of(() => new Date().toISOString())];
	for (let round = 0; round <= rounds; round++) {
		const startedMs = performance.now();
		for (let sent = 0; sent < rows; sent += FLUSH_BATCH_MAX) {
			const ids = of(() => crypto.randomUUID());
			await sql`
				with placed as (
					insert into floor_event select * from unnest(${ids}::uuid[], ${texts}::text[], ${texts}::text[],
						${texts}::text[], ${texts}::text[], ${counts}::bigint[], ${counts}::bigint[], ${counts}::bigint[],
						${times}::text[]::timestamptz[], ${times}::text[]::timestamptz[])
					returning charge)
				update floor_budget set used = used + charged
				from (select charge % ${BUDGETS} as budget, sum(charge)::bigint as charged from placed group by 1) sums
				where floor_budget.budget = sums.budget`;
		}
		const seconds = (performance.now() - startedMs) / 1000;
		if (round > 0) figures.add("settle", "settlements to Postgres", "1/s", "floor", rows / seconds);
	}
}
