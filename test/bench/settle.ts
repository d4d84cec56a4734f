/** The write-behind path alone: how many settlements one instance gets into Postgres. */
import { systemClock } from "../../src/base/clock.ts";
import { silentLog } from "../../src/base/log.ts";
import { FLUSH_AT, FLUSH_BATCH_MAX } from "../../src/ledger/epoch.ts";
import { createWriter } from "../../src/ledger/writer.ts";
import { nanoUsd } from "../../src/money/nano-usd.ts";
import { settledEvent } from "../ledger/fixture.ts";
import type { Figures } from "./figures.ts";
import { liveInstance } from "./live-instance.ts";
import { CORES, moveToCore } from "./machine.ts";
import { cpuMicros } from "./process-usage.ts";
import { settleFloor } from "./settle-floor.ts";
import { walBytes } from "./wal.ts";
import type { World } from "./world.ts";

const CUSTOMERS = 100;
const CHARGE = nanoUsd(120_000);
/** A backlog, as behind an outage. */
const WAITING_MAX = 4 * FLUSH_BATCH_MAX;
const ROWS_QUICK = 60_000;
const ROWS = 300_000;

/** The production writer on the production store, in batches as large as the product's, for 100 accounts with a key each. */
export async function settle(world: World, figures: Figures): Promise<void> {
	const database = await world.postgres.database("bench_settle");
	const customers: Awaited<ReturnType<typeof database.customer>>[] = [];
	for (let index = 0; index < CUSTOMERS; index++) customers.push(await database.customer(1));
	const instance = await liveInstance(database, world.folder, "settle");
	const { ledger, store } = instance;
	const rows = world.mode.quick ? ROWS_QUICK : ROWS;
	const rounds = world.mode.rounds;
	const need = nanoUsd((CHARGE * rows * (rounds + 1)) / CUSTOMERS + 1e9);
	for (const { accountId, keyIds } of customers)
		await ledger.draw({ account: accountId, key: keyIds[0] as string }, need);
	// The database stays where it is, so that this process has a core to itself as the gateway has.
	moveToCore("gateway");
	try {
		for (let round = 0; round <= rounds; round++) {
			const queue = Array.from({ length: rows }, (_, index) => {
				const { accountId, keyIds } = customers[index % CUSTOMERS] as (typeof customers)[number];
				return settledEvent(accountId, keyIds[0] as string, CHARGE, { at: Date.now() });
			});
			const options = { flushIntervalMs: 100, flushAt: FLUSH_AT, batchMax: FLUSH_BATCH_MAX, queueMax: WAITING_MAX + 1 };
			const writer = createWriter({ store, clock: systemClock, log: silentLog }, options);
			let acknowledged = 0;
			const own = process.cpuUsage();
			const walBefore = await walBytes(database.sql);
			const postgresCpu = cpuMicros(world.postgres.pids());
			const startedMs = performance.now();
			const acknowledge = () => void acknowledged++;
			for (const [ticket, event] of queue.entries()) {
				// Others end while some are under way.
				while (writer.queued() >= WAITING_MAX) await Bun.sleep(1);
				writer.settle(event, acknowledge, ticket, startedMs);
			}
			await writer.drain();
			const seconds = (performance.now() - startedMs) / 1000;
			const used = process.cpuUsage(own);
			if (acknowledged !== rows) throw new Error(`${acknowledged} of ${rows} settlements were acknowledged`);
			if (round === 0) continue;
			figures.add("settle", "settlements to Postgres", "1/s", "tollgate", rows / seconds);
			figures.add("settle", "CPU per settlement", "µs", "tollgate", (used.user + used.system) / rows);
			const postgresMicros = cpuMicros(world.postgres.pids()) - postgresCpu;
			figures.add("settle", "CPU per settlement", "µs", "Postgres beside it", postgresMicros / rows);
			const wal = (await walBytes(database.sql)) - walBefore;
			figures.add("settle", "WAL per settlement", "bytes", "tollgate", wal / rows);
		}
		if (world.startFloor !== undefined) await settleFloor(database, figures, rows, rounds);
	} finally {
		moveToCore(CORES ? "rest" : "gateway");
		await instance.stop();
	}
	const books = await database.books();
	const expected = rows * (rounds + 1);
	world.checks.push(
		{
			name: "settle: every settlement is in Postgres",
			ok: books.requests === expected,
			detail: `${books.requests} of ${expected}`,
		},
		{
			name: "settle: the charges add up",
			ok: books.charged === expected * CHARGE,
			detail: `${books.charged} nano-dollars`,
		},
		{ name: "settle: the books reconcile", ok: books.reconciled, detail: books.broken.join("; ") || "all checks hold" },
	);
	await database.close();
}
