import { expect, spyOn, test } from "bun:test";
import { PgBoss } from "pg-boss";
import { type Clock, systemClock } from "../../src/base/clock.ts";
import { createLog, type Log, silentLog } from "../../src/base/log.ts";
import { createBatchBooks } from "../../src/batch/batch-books.ts";
import { createBatchRunner } from "../../src/batch/batch-runner.ts";
import type { RunDeps } from "../../src/batch/run-batch.ts";
import { withDatabase } from "../support/database.ts";
import { waitFor } from "../support/wait.ts";

const db = await withDatabase();

const pids = async () => {
	const rows = await db.sql`
		select pid from pg_stat_activity where datname = current_database() and application_name = 'tollgate batches'`;
	return rows.map(({ pid }) => pid);
};
const connections = async () => (await pids()).length;

const unused = () => {
	throw new Error("no batch is run");
};
const makeRunner = (log: Log, clock: Clock = systemClock) =>
	createBatchRunner(
		{
			...({ files: {}, carrier: {}, refused: new Set(), graceMs: 0, snapshot: unused } as unknown as RunDeps),
			books: createBatchBooks(db),
			clock,
			log,
		},
		db,
	);

test("the batch queue leaves no connection or timer after a failed start", async () => {
	const said: string[] = [];
	const log = createLog({ level: "error", write: (line) => said.push(JSON.parse(line).message) });
	const runner = makeRunner(log);
	await runner.start();
	expect(await connections()).toBeGreaterThan(0);
	await runner.stop();

	await db.sql`alter function batch_jobs.create_queue rename to create_queue_away`;
	const next = makeRunner(log);
	const stops = spyOn(PgBoss.prototype, "stop");
	await next.start();
	// The failed queue was stopped, because its timers would otherwise continue to send queries.
	expect(stops).toHaveBeenCalledTimes(1);
	expect(said).toEqual(["the queue of batches could not be started; trying again"]);
	await waitFor(async () => (await connections()) === 0, "the connections of the failed start to be gone");
	await db.sql`alter function batch_jobs.create_queue_away rename to create_queue`;
	await next.start();
	expect(said.length).toBe(1);
	expect(await connections()).toBeGreaterThan(0);
	await next.stop();
}, 30_000);

test("the batch queue closes its connections to a replaced database server", async () => {
	const runner = makeRunner(silentLog);
	await runner.start();
	// A connection whose server is still being checked may stay, because the check is repeated after the failover.
	const checked = async () => {
		const rows = await db.sql`select pid from pg_stat_activity where datname = current_database()
			and application_name = 'tollgate batches' and query like '%batch_jobs%'`;
		return rows.map(({ pid }) => pid);
	};
	await waitFor(async () => (await checked()).length > 0, "a checked connection");
	const old = await checked();
	db.history.look()("another/00000002 9");
	await waitFor(async () => !(await pids()).some((pid) => old.includes(pid)), "the old connections to close");
	await runner.stop();
}, 30_000);

test("a batch queue that is stopped during its start leaves no connections or timers", async () => {
	const looks = new Set<() => void>();
	const clock: Clock = {
		...systemClock,
		after(delayMs, run) {
			if (delayMs < 60_000) return systemClock.after(delayMs, run);
			looks.add(run);
			return () => looks.delete(run);
		},
	};
	const runner = makeRunner(silentLog, clock);
	void runner.start();
	await runner.stop();
	expect(looks.size).toBe(0);
	const never = makeRunner(silentLog, clock);
	await never.stop();
	await never.start();
	expect(looks.size).toBe(0);
	await waitFor(async () => (await connections()) === 0, "the connections to be gone");
}, 30_000);

test("the batch queue starts an open batch that has no job, even the 1,001st", async () => {
	// The batches have no output files, so a runner that takes one of them fails.
	await db.sql`
		insert into batch (id, account_id, key_id, endpoint, input_file_id, completion_window, created_at, expires_at, state, model)
		select 'batch_' || lpad(n::text, 4, '0'), 'acc_' || n, 'key', '/v1/chat/completions', 'file', '24h', now(), now() + interval '1 day', 'in_progress', 'm'
		from generate_series(1, 1001) n`;
	const runner = makeRunner(silentLog);
	await runner.start();
	const jobs = await db.sql`select 1 from batch_jobs.job where singleton_key = 'batch_1001'`;
	await runner.stop();
	expect(jobs.length).toBe(1);
}, 60_000);
