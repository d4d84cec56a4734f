/** Cost of console pages and jobs of the books on a history of a size. */
import type postgres from "postgres";
import { foldUsage } from "../../../src/console/usage/usage-fold.ts";
import { reconcile } from "../../../src/ledger/reconciler.ts";
import type { BenchDatabase } from "../product.ts";
import { consoleSteps } from "./console-steps.ts";
import { type Cost, createCounter } from "./counted.ts";

/** `watcher` sends no other statements in the meantime. Throws if the books do not reconcile. */
export async function costsOf(
	database: BenchDatabase,
	watcher: postgres.Sql,
	{ days, accounts }: { days: number; accounts: number },
): Promise<Map<string, Cost>> {
	const counter = await createCounter(watcher);
	const costs = new Map<string, Cost>();
	const add = (step: string, cost: Cost) => void costs.set(step, cost);
	await consoleSteps({ database, counter, add, days, accounts });
	add("a fold", await counter.cost(() => foldUsage(database.statements)));
	const { ok, checks } = await reconcile(database.statements);
	if (!ok) throw new Error(`the books do not reconcile: ${JSON.stringify(checks.filter((check) => !check.ok))}`);
	add("a check of the books", await counter.cost(() => reconcile(database.statements)));
	const step = (text: string) => counter.cost(() => database.sql.unsafe(text));
	add("a step of sealing", await step("select state from books_seal(200)"));
	add("a step of reading again", await step("select state from books_verify(200)"));
	add("closing some leases", await step("select done from lease_close('gateway-1', 1, false, 50)"));
	return costs;
}
