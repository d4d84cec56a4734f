import { expect, test } from "bun:test";
import postgres from "postgres";
import { silentLog } from "../../../src/base/log.ts";
import { migrate } from "../../../src/db/migrate.ts";
import { withOwnPostgres } from "../../chaos/own-postgres.ts";
import { untilEnd } from "../../support/at-end.ts";
import { LONG } from "../../support/long-form.ts";
import { NO_DURABILITY } from "../../support/postgres.ts";
import { openBenchDatabase } from "../product.ts";
import { costsOf } from "./costs.ts";
import type { Cost } from "./counted.ts";
import { createCounter } from "./counted.ts";
import type { Size } from "./fill.ts";
import { fillHistory, HEAVY_ACCOUNT } from "./fill.ts";

/** Rows per day. The two compared histories differ tenfold in days; `bun run bench:size` compares larger ones. */
const ROWS_PER_DAY = 100;
const DAYS = [40, 400] as const;
const ACCOUNTS = 100;
const LEASES = 2_000;
/** A larger ratio of read pages counts as growth. A deeper index costs less than this ratio. */
const FACTOR_MAX = 1.5;
const PAGES_MORE = 60;
/** Work whose upper bound is above the shorter history, with the bound. */
const BOUNDED: Readonly<Record<string, string>> = {
	"console: usage, 400 days by day": "400 days at most",
	"console: credit with its ledger, a small account": "51 days with usage at most",
	"console: operator: account": "51 days with usage at most",
	"console: operator: revenue, figures": "one row of sums for each day, model and ending",
	"console: requests, failed ones": "the hours of a page's requests at most, of each model",
};

/**
 * Pages for 30 days, whatever the history's length: rows fetched by page (18 pages) or one by one (138), as the planner
 * decides. All of the account's rows would be thousands of pages, the overview's part hundreds.
 */
const BY_PLAN: Readonly<Record<string, number>> = { "console: usage, 30 days by hour": 200, "console: overview": 350 };

// A separate Postgres server, so that its counts contain no other test's statements.
async function startServer() {
	const server = await withOwnPostgres({ ...NO_DURABILITY, shared_preload_libraries: "pg_stat_statements" });
	const addressOf = (name: string) => server.url.replace(/\/tollgate$/, `/${name}`);
	const admin = postgres(server.url, { max: 1, onnotice: () => {} });
	untilEnd({ stop: () => admin.end() });
	await admin.unsafe("create database migrated");
	await migrate({ log: silentLog }, addressOf("migrated"));
	return { admin, addressOf };
}

/** Only the long run checks the costs; other tests check what the service answers. */
const server = LONG ? await startServer() : undefined;

async function filledDatabase(name: string, size: Size) {
	const { admin, addressOf } = server as Awaited<ReturnType<typeof startServer>>;
	await admin.unsafe(`create database ${name} template migrated`);
	const address = addressOf(name);
	const { url } = await migrate({ log: silentLog }, address);
	const filler = postgres(url, { max: 1, onnotice: () => {} });
	const filled = await fillHistory(filler, size, () => {});
	await filler.end();
	const database = await openBenchDatabase(address);
	untilEnd({ stop: () => database.close() });
	const watcher = postgres(address, { max: 1, onnotice: () => {} });
	untilEnd({ stop: () => watcher.end() });
	return { filled, database, watcher };
}

async function costsAfter(days: number): Promise<Map<string, Cost>> {
	const size = { usageRows: days * ROWS_PER_DAY, rowsPerDay: ROWS_PER_DAY, accounts: ACCOUNTS };
	const { filled, database, watcher } = await filledDatabase(`days_${days}`, size);
	const costs = await costsOf(database, watcher, { days: filled.days, accounts: ACCOUNTS });
	const [log] = await database.sql<
		{ rows: number }[]
	>`select count(*)::int as rows from usage_event where account_id = ${HEAVY_ACCOUNT}`;
	expect(log?.rows).toBeGreaterThan((days * ROWS_PER_DAY) / 12);
	return costs;
}

test.if(LONG)("no console page or job reads more pages of Postgres if the history is longer", async () => {
	const [short, long] = [await costsAfter(DAYS[0]), await costsAfter(DAYS[1])];
	const grown: string[] = [];
	for (const [step, { pages }] of long) {
		const before = short.get(step)?.pages ?? 0;
		if (pages <= FACTOR_MAX * before + PAGES_MORE || BOUNDED[step] !== undefined || step in BY_PLAN) continue;
		grown.push(`${step}: ${before.toFixed(0)} pages behind ${DAYS[0]} days, ${pages.toFixed(0)} behind ${DAYS[1]}`);
	}
	expect(grown).toEqual([]);
	for (const [step, pagesMax] of Object.entries(BY_PLAN)) expect(long.get(step)?.pages).toBeLessThan(pagesMax);
	for (const step of Object.keys(BOUNDED)) expect([step, long.has(step)]).toEqual([step, true]);
});

test.if(LONG)("closing, sealing and removing a large epoch takes many steps of equal size", async () => {
	const { database, watcher } = await filledDatabase("leases", { usageRows: 1_000, rowsPerDay: 200, accounts: LEASES });
	const counter = await createCounter(watcher);
	const work = {
		"closing them": (limit: number) => `select closed::int as n from lease_close('gateway-1', 1, false, ${limit})`,
		"sealing them": (limit: number) => `select books_seal_leases(${limit}) as n`,
		"removing them": (limit: number) => `select removal_leases(0, ${limit})::int as n`,
	};
	for (const [name, text] of Object.entries(work)) {
		let done = 0;
		const step = async (limit: number) => {
			const [row] = await database.sql.unsafe<{ n: number }[]>(text(limit));
			done += row?.n ?? 0;
			return row?.n === limit;
		};
		// The first step also plans the statements, so it is not counted.
		await step(50);
		const first = await counter.cost(() => step(50));
		while (done < LEASES && (await step(500)));
		const last = await counter.cost(() => step(50));
		expect([name, done]).toEqual([name, LEASES + 150]);
		expect([name, last.pages]).toEqual([name, Math.min(last.pages, first.pages * FACTOR_MAX + PAGES_MORE)]);
		while (await step(500));
	}
});
