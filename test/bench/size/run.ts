/**
 * Costs of pages and jobs after years of history against a hundredth of it, in counts that other load does not change.
 *
 *     bun run bench:size                                           100 million requests, a million accounts: an hour, 60 GB
 *     bun run bench:size -- --rows 6000000 --accounts 100000       a smaller one
 *
 * Both sizes have as many requests a day. Replaces `../results/size.md`.
 */
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import postgres from "postgres";
import { silentLog } from "../../../src/base/log.ts";
import { startEmbeddedPostgres } from "../../../src/db/embedded.ts";
import { migrate } from "../../../src/db/migrate.ts";
import { describeMachine } from "../machine.ts";
import { openBenchDatabase } from "../product.ts";
import { numberText } from "../report.ts";
import { costsOf } from "./costs.ts";
import type { Cost } from "./counted.ts";
import { fillHistory, type Size } from "./fill.ts";

/** Settings only for filling, because after a crash the database can be filled again. */
const CARELESS = { fsync: "off", synchronous_commit: "off", full_page_writes: "off", autovacuum: "off" };
const MEASURED = { shared_preload_libraries: "pg_stat_statements", "pg_stat_statements.track": "all" };
const ROWS_PER_DAY = 100_800;
const STATEMENT_MS_MAX = 10 * 60_000;

const { values: flags } = parseArgs({
	options: { rows: { type: "string", default: "100000000" }, accounts: { type: "string", default: "1000000" } },
});
const say = (line: string) => process.stderr.write(`${new Date().toISOString()}  ${line}\n`);
const sizes = [0.01, 1].map((share) => ({
	usageRows: Number(flags.rows) * share,
	rowsPerDay: ROWS_PER_DAY,
	accounts: Math.round(Number(flags.accounts) * share),
}));
const head = (size: Size) =>
	`${size.usageRows.toLocaleString("en-US")} requests, ${size.accounts.toLocaleString("en-US")} accounts`;
const [small, large] = [await measured(sizes[0] as Size), await measured(sizes[1] as Size)];
const rows = [...large].map(([step, cost]) => {
	const before = small.get(step) as Cost;
	const pair = (of: (cost: Cost) => number) => `${numberText(of(before))} | ${numberText(of(cost))}`;
	const growth = numberText(cost.pages / Math.max(1, before.pages));
	return `| ${step} | ${pair(({ pages }) => pages)} | ${growth} | ${pair(({ statements }) => statements)} | ${pair(({ walBytes }) => walBytes)} | ${pair(({ ms }) => ms)} |`;
});
const { cpu, cores } = describeMachine();
const text = `# Cost of pages and jobs by the size of the history

\`bun run bench:size\`, ${new Date().toISOString().slice(0, 10)}, ${cpu}, ${cores} cores. Pages (of 8 KB that PostgreSQL reads), statements and
WAL bytes are exact; times depend on the machine. B has a hundred times the history of A.

- A: ${head(sizes[0] as Size)}
- B: ${head(sizes[1] as Size)}

| | pages, A | pages, B | B ÷ A | statements, A | statements, B | WAL bytes, A | WAL bytes, B | ms, A | ms, B |
|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|
${rows.join("\n")}
`;
process.stdout.write(text);
await Bun.write(join(import.meta.dir, "../results/size.md"), text);

async function measured(size: Size): Promise<Map<string, Cost>> {
	say(head(size));
	const folder = mkdtempSync(join(tmpdir(), "tollgate-size-"));
	// Postgres runs as another user, who must be able to enter the folder.
	chmodSync(folder, 0o755);
	try {
		const days = await onServer(folder, CARELESS, async (address) => {
			const { url } = await migrate({ log: silentLog }, address);
			const sql = postgres(url, { max: 1, onnotice: () => {} });
			return (await fillHistory(sql, size, say).finally(() => sql.end())).days;
		});
		return await onServer(folder, MEASURED, async (address) => {
			const database = await openBenchDatabase(address, STATEMENT_MS_MAX);
			const watcher = postgres(address, { max: 1, onnotice: () => {} });
			return costsOf(database, watcher, { days, accounts: size.accounts }).finally(async () => {
				await watcher.end();
				await database.close();
			});
		});
	} finally {
		rmSync(folder, { recursive: true, force: true });
	}
}

async function onServer<T>(
	folder: string,
	settings: Record<string, string>,
	work: (address: string) => Promise<T>,
): Promise<T> {
	const server = await startEmbeddedPostgres({ log: silentLog }, { dataDir: folder, settings });
	return work(server.url).finally(() => server.stop());
}
