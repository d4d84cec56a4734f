import { expect, test } from "bun:test";
import { systemClock } from "../../src/base/clock.ts";
import { silentLog } from "../../src/base/log.ts";
import { migrate } from "../../src/db/migrate.ts";
import { createStatements } from "../../src/db/statements.ts";
import { withOwnPostgres } from "../chaos/own-postgres.ts";
import { atEnd } from "../support/at-end.ts";
import { testDatabaseAt } from "../support/database.ts";
import { NO_DURABILITY } from "../support/postgres.ts";
import { chatModel, withService } from "../support/service.ts";
import { foldAll } from "../support/sums.ts";
import { withUpstream } from "../support/upstream-server.ts";
import { operator, PERSON_ENV, type Person, signedUp, topUp } from "./person.ts";
import { writeRefusals, writeUsage } from "./usage-rows.ts";

/** The log has about 170 rows an hour in 24 groups of sums. More days would only repeat such hours. */
const DAYS = 10;
const DAY_MS = 86_400_000;
const ROWS = 40_000;
const TIDY_ROWS = 4_000;
const REFUSALS = 20_000;
/** Blocks allowed for reads by other statements during a measurement. */
const LOOKS_MAX = 5;
/** Most blocks of 8 KB that a page of the log may read; pages need up to 250, and the log has four times this many. */
const BLOCKS_MAX = 420;
/** Most blocks for an empty result, including reads by background jobs. */
const BLOCKS_OF_NONE = 250;
/** Most blocks for pages that search hourly sums or rare rows, whichever plan PostgreSQL chooses. */
const BLOCKS_OF_SUMS = 2_000;

// This file uses its own database server, so that reads by other tests are not counted.
const server = await withOwnPostgres({ ...NO_DURABILITY, shared_preload_libraries: "pg_stat_statements" });
await migrate({ log: silentLog }, server.url);
const database = await testDatabaseAt(server.url);
const upstream = withUpstream("vllm");
const service = await withService({
	models: chatModel({ url: upstream.url, dialect: "vllm" }),
	env: PERSON_ENV,
	database,
	// Background jobs run a thousand times less often, so that their reads are not counted.
	jobs: { pace: 1 / 1_000 },
});
const customer = await signedUp(service);
const boss = await operator(service);
await topUp(customer, boss);
const keyIds: string[] = [];
for (let number = 0; number < 8; number++)
	keyIds.push((await customer.send("POST", "/api/console/keys", { name: `key ${number}` })).body.key.id);
const projectId: string = (await customer.send("POST", "/api/console/projects", { name: "search" })).body.id;
const of = { accountId: customer.accountId, keyIds, models: 6, projectId };
await Promise.all([
	indexedAfterwards("usage_event", () => writeUsage(database, { ...of, rows: ROWS, days: DAYS })),
	indexedAfterwards("refused_request", () => writeRefusals(database, { ...of, rows: REFUSALS, days: DAYS / 2 })),
]);
const sums = createStatements(
	{ clock: systemClock, log: silentLog },
	{ url: database.url, applicationName: "sums", connectionsMax: 1, statementDeadlineMs: 120_000 },
);
atEnd(() => sums.end());
// Resets the position of the hourly sums, because they would skip rows that are settled before it.
await database.sql`update usage_cursor set horizon = null`;
await foldAll(sums);
expect((await database.sql`select sum(requests)::int as n from usage_hour`)[0]?.n).toBe(ROWS);
await pack();
await database.sql`create extension pg_stat_statements`;

/** Orders the rows on disk by time, as a service writes them. In random order each row would need its own block. */
async function pack(): Promise<void> {
	await database.sql`cluster usage_hour using usage_hour_account_id_hour_key_id_model_class_pk`;
	await database.sql`cluster usage_project_hour using usage_project_hour_pk`;
	await database.sql`analyze usage_event, refused_request, usage_hour, usage_project_hour`;
}

/** Writes the table's rows first and then creates its indexes, which is faster. */
async function indexedAfterwards(table: string, write: () => Promise<void>): Promise<void> {
	const { sql } = database;
	const indexes = await sql<{ indexname: string; indexdef: string }[]>`
		select indexname, indexdef from pg_indexes where schemaname = 'public' and tablename = ${table}
			and indexname not in (select conname from pg_constraint where conrelid = ${table}::regclass)`;
	for (const { indexname } of indexes) await sql.unsafe(`drop index ${indexname}`);
	await write();
	await Promise.all(indexes.map(({ indexdef }) => sql.unsafe(indexdef)));
	const [made] =
		await sql`select count(*)::int as n from pg_indexes where schemaname = 'public' and tablename = ${table}
		and indexname = any(${indexes.map(({ indexname }) => indexname)})`;
	expect([indexes.length > 0, made?.n]).toEqual([true, indexes.length]);
}

/**
 * Returns the blocks that a page's statements read: the minimum of several tries, because heartbeats and catalogue
 * reads of a new connection only add to the count.
 */
async function blocksOf(person: Person, path: string, blocksMax: number): Promise<number> {
	let fewest = Number.POSITIVE_INFINITY;
	for (let look = 0; look < LOOKS_MAX && fewest > blocksMax; look++) {
		await database.sql`select pg_stat_statements_reset()`;
		expect({ path, status: (await person.get(path)).status }).toEqual({ path, status: 200 });
		const [row] = await database.sql<{ blocks: number }[]>`
			select sum(shared_blks_hit + shared_blks_read)::int as blocks from pg_stat_statements
			where query not like '%pg_stat_statements%'`;
		fewest = Math.min(fewest, row?.blocks ?? 0);
	}
	return fewest;
}

test("each page of a long request log reads less than a quarter of it", async () => {
	const nowMs = Date.now();
	const at = (days: number) => nowMs - Math.round(days * DAY_MS);
	const rows = (await customer.get("/api/console/requests?limit=50")).body;
	const deep = (await customer.get(`/api/console/requests?limit=50&to=${at((3 / 4) * DAYS)}`)).body;
	const paths = [
		"/me",
		"/keys",
		`/keys/${keyIds[0]}`,
		"/credit",
		"/credit/running",
		"/requests",
		`/requests?after=${rows.next}`,
		`/requests?to=${at((3 / 4) * DAYS)}&after=${deep.next}`,
		`/requests?key=${keyIds[3]}`,
		"/requests?status=refused",
		`/requests?status=refused&after=${rows.next}`,
		`/requests?status=refused&to=${at(DAYS / 3)}`,
		"/requests?status=refused&model=rare-model",
		"/requests?status=refused&model=no-such-model",
		`/requests?status=refused&key=${keyIds[3]}`,
		"/requests?model=rare-model",
		"/requests?model=rare-model&status=failed",
		"/requests?model=no-such-model",
		`/requests?model=model-2&key=${keyIds[1]}&status=left`,
		`/requests?project=${projectId}`,
		`/requests?project=${projectId}&to=${at((3 / 4) * DAYS)}`,
		`/requests?project=${projectId}&model=rare-model`,
		`/requests?project=${projectId}&status=failed`,
		`/requests?project=${projectId}&key=${keyIds[3]}&model=model-2`,
		`/requests/${rows.items[0].id}`,
	];
	const byHours = [
		"/overview",
		"/credit/ledger",
		"/usage",
		`/usage?from=${at(DAYS)}&group=model`,
		`/usage?from=${at(DAYS)}&group=key&status=failed`,
		`/usage?from=${at(DAYS / 2)}&bucket=hour&group=status`,
		`/usage?from=${at(DAYS / 2)}&bucket=hour&group=key&model=model-1`,
		`/usage?from=${at(DAYS)}&group=project`,
		`/usage?from=${at(DAYS)}&group=model&project=${projectId}`,
		"/requests?status=failed",
		`/requests?status=refused&model=model-2&key=${keyIds[1]}`,
		`/requests?project=none&to=${at(DAYS / 3)}`,
		`/requests?project=none&model=rare-model`,
		`/requests?project=none&key=${keyIds[3]}&status=failed`,
		"/requests?project=none&model=no-such-model",
		// PostgreSQL reads 20 blocks by the key's index or 1,140 by the project's hours.
		`/requests?project=${projectId}&status=failed&key=${"key_".padEnd(36, "0")}`,
	];
	const office = ["/operator/summary", "/operator/accounts", "/operator/instances", "/operator/audit"];
	const [log] = await database.sql`
		select sum(relpages)::int as blocks from pg_class where relname in ('usage_event', 'refused_request')`;
	expect(log?.blocks).toBeGreaterThan(4 * BLOCKS_MAX);
	const over: string[] = [];
	for (const [person, of, blocksMax] of [
		[customer, paths, BLOCKS_MAX],
		[customer, byHours, BLOCKS_OF_SUMS],
		[boss, office, BLOCKS_MAX],
		[boss, [`/operator/accounts/${customer.accountId}`], BLOCKS_OF_SUMS],
	] as const) {
		for (const path of of) {
			const blocks = await blocksOf(person, `/api/console${path}`, blocksMax);
			console.log(`${String(blocks).padStart(6)} blocks  ${path.slice(0, 90)}`);
			if (blocks > blocksMax) over.push(`${path}: ${blocks} of ${log?.blocks}`);
		}
	}
	expect(over).toEqual([]);
}, 60_000);

test("a filter finds all rows of a rare model in a long request log", async () => {
	const all = async (query: string, limit = 200) => {
		const ids: string[] = [];
		let after: string | null = null;
		do {
			const page: { items: { id: string }[]; next: string | null } = (
				await customer.get(`/api/console/requests?limit=${limit}&${query}${after === null ? "" : `&after=${after}`}`)
			).body;
			ids.push(...page.items.map((item) => item.id));
			after = page.next;
		} while (after !== null);
		return new Set(ids).size;
	};
	const [rare] = await database.sql`select count(*)::int as n from usage_event where model = 'rare-model'`;
	const [turnedAway] = await database.sql`select count(*)::int as n from refused_request where model = 'rare-model'`;
	expect(await all("model=rare-model")).toBe(rare?.n + turnedAway?.n);
	expect(await all("model=rare-model&status=refused")).toBe(turnedAway?.n);
	const [failed] =
		await database.sql`select count(*)::int as n from usage_event where ending = 'upstream_failed' and key_id = ${keyIds[2] ?? ""}`;
	expect(await all(`status=failed&key=${keyIds[2]}`)).toBe(failed?.n);
	// The range starts and ends within an hour, and is read in short pages, once by each index of the hourly sums.
	const [from, to] = [Date.now() - 0.9 * DAYS * DAY_MS - 1_234_567, Date.now() - DAY_MS / 4 - 2_345_678];
	for (const [query, model, ending, key] of [
		["model=rare-model", "rare-model", null, null],
		["status=failed", null, "upstream_failed", null],
		[`status=failed&key=${keyIds[1]}`, null, "upstream_failed", keyIds[1]],
		[`model=model-1&status=failed`, "model-1", "upstream_failed", null],
		[`model=model-1&status=left&key=${keyIds[7]}`, "model-1", "client_left", keyIds[7]],
		[`project=${projectId}&status=failed`, null, "upstream_failed", null],
		[`project=${projectId}&model=model-1&status=left`, "model-1", "client_left", null],
		[`project=${projectId}&status=left&key=${keyIds[3]}`, null, "client_left", keyIds[3]],
		["project=none&status=failed", null, "upstream_failed", null],
		[`project=none&model=model-1&status=left&key=${keyIds[3]}`, "model-1", "client_left", keyIds[3]],
	] as const) {
		const [within] = await database.sql`
			select count(*)::int as n from usage_event where admitted_at >= to_timestamp(${from}::float8 / 1000)
				and admitted_at < to_timestamp(${to}::float8 / 1000) and (${model}::text is null or model = ${model}::text)
				and (${ending}::text is null or ending = ${ending}::text) and (${key ?? null}::text is null or key_id = ${key ?? null}::text)
				and (${!query.startsWith("project")} or project_id is not distinct from ${query.startsWith("project=none") ? null : projectId})`;
		const refused = query.startsWith("model=rare") ? await refusedWithin(from, to) : 0;
		expect({ query, found: await all(`${query}&from=${from}&to=${to}`, 3) }).toEqual({
			query,
			found: (within?.n ?? 0) + refused,
		});
		expect(within?.n).toBeGreaterThan(3);
	}
}, 60_000);

async function refusedWithin(from: number, to: number): Promise<number> {
	const [row] = await database.sql`
		select count(*)::int as n from refused_request where model = 'rare-model'
			and refused_at >= to_timestamp(${from}::float8 / 1000) and refused_at < to_timestamp(${to}::float8 / 1000)`;
	return row?.n ?? 0;
}

test("a filter without results in a long request log reads few database blocks", async () => {
	const { sql } = database;
	for (const query of [
		"model=no-such-model",
		"model=no-such-model&status=failed",
		`model=no-such-model&key=${keyIds[3]}`,
		"model=rare-model&status=left&from=1000000000000&to=1500000000000",
		`status=failed&key=${"key_".padEnd(36, "0")}`,
		`project=${"proj_".padEnd(36, "0")}`,
		`project=${projectId}&model=no-such-model`,
	]) {
		const blocks = await blocksOf(customer, `/api/console/requests?${query}`, BLOCKS_OF_NONE);
		expect({ query, blocks }).toEqual({ query, blocks: Math.min(blocks, BLOCKS_OF_NONE) });
	}
	// After some calls PostgreSQL switches to a generic plan, which must read as few blocks.
	for (let call = 0; call < 8; call++)
		await sql`select * from usage_hours(${customer.accountId}, null, 'none', null, '-infinity', 'infinity', 50)`;
	const [row] = await sql<{ blocks: number }[]>`
		select max((shared_blks_hit + shared_blks_read) / calls)::int as blocks from pg_stat_statements where query like '%usage_hours%' and toplevel`;
	expect(row?.blocks ?? 0).toBeLessThan(BLOCKS_OF_NONE);
}, 60_000);

test("the usage sums of a long request log are exact", async () => {
	const [rows] =
		await database.sql`select sum(charged_nano_usd)::text as charged, count(*)::text as n from usage_event`;
	const series = (await customer.get(`/api/console/usage?from=${Date.now() - (DAYS + 1) * DAY_MS}`)).body;
	expect(String(series.total.costNanoUsd)).toBe(rows?.charged);
	expect(String(series.total.requests)).toBe(rows?.n);
	const ledger = (await customer.get("/api/console/credit/ledger?limit=1")).body;
	expect(ledger.items[0].runningNanoUsd).toBe(100e9 - series.total.costNanoUsd);
});

test("the CSV of a long request log is streamed", async () => {
	const response = await customer.fetch("/api/console/requests.csv");
	let bytes = 0;
	for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
		bytes += chunk.length;
		if (bytes > 2_000_000) break;
	}
	expect(bytes).toBeGreaterThan(2_000_000);
}, 60_000);

test("usage outside projects is found among much usage in projects", async () => {
	const tidy = await signedUp(service);
	await topUp(tidy, boss);
	const keyIds = [(await tidy.send("POST", "/api/console/keys", { name: "all" })).body.key.id];
	const { id } = (await tidy.send("POST", "/api/console/projects", { name: "all" })).body;
	const of = { accountId: tidy.accountId, keyIds, projectId: id, allInProject: true };
	const [before] = await database.sql`select pg_current_xact_id()::text as xid`;
	await writeUsage(database, { ...of, rows: TIDY_ROWS, days: DAYS, models: 1 });
	// Sets the position of the sums so that the new rows are after it and the old rows, already summed, before it.
	await database.sql`update usage_cursor set folded_at = '2000-01-01', horizon = ${before?.xid ?? ""}`;
	await foldAll(sums);
	const [summed] = await database.sql`select sum(requests)::int as n from usage_hour`;
	expect(summed?.n).toBe(ROWS + TIDY_ROWS);
	await pack();
	const path = "/api/console/requests?project=none";
	expect((await tidy.get(`${path}&limit=200`)).body.items).toHaveLength(50);
	const [log] = await database.sql`
		select count(distinct (ctid::text::point)[0])::int as blocks from usage_event where account_id = ${tidy.accountId}`;
	const blocks = await blocksOf(tidy, path, BLOCKS_OF_SUMS);
	console.log(`${String(blocks).padStart(6)} blocks  behind all that was used in a project, of ${log?.blocks}`);
	expect(blocks).toBeLessThanOrEqual(BLOCKS_OF_SUMS);
}, 60_000);
