/** Tests of a database that changes under a running instance: an older state, or a standby without the last commits. */
import { expect, test } from "bun:test";
import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "../../src/base/clock.ts";
import { createLog, silentLog } from "../../src/base/log.ts";
import { appendControl } from "../cluster/fixture.ts";
import { moveToAnotherServer } from "../support/another-server.ts";
import { waitFor } from "../support/wait.ts";
import { outcome } from "./fixture.ts";
import { CREDIT, withLeases } from "./lease-world.ts";

const world = withLeases();
const { startChild, startHere, reserveHere, settleHere, broken, journals, available, usage } = world;

/** Waits for the end of the first epoch. */
const firstLeft = () =>
	waitFor(
		async () => (await world.db.sql`select 1 from instance_now where epoch = 1 and state = 'left'`).length === 1,
		"the end of the first epoch",
	);

test("a journal stays intact if a restored database repeats its epoch's number", async () => {
	const child = await startChild("one");
	await child.acts("open done 100", "settle done 60", "open streaming 1000", "progress streaming 200 320");
	await child.end();
	// Restores the state from before this instance joined.
	await world.db.sql`truncate instance_beat, lease, lease_op, usage_event, reservation`;
	await world.db.sql`update budget set drawn_nano_usd = 0`;
	// Removes the record of the last epoch; otherwise the instance would skip the number.
	rmSync(join(world.dataDir, "journal/one last-epoch"));

	const next = await startHere("one");
	await next.recovered();
	const rows = await world.db.sql`select charged_nano_usd as charged from usage_event order by charged_nano_usd`;
	expect(rows.map((row) => Number(row.charged))).toEqual([60, 200]);
	expect(await available()).toBe(CREDIT - 60 - 200);
	expect(journals("one")).toEqual([String(next.present()?.epoch)]);
	const open = await world.db.sql`select epoch from instance_now where id = 'one' and state <> 'left'`;
	expect(open.map(({ epoch }) => epoch)).toEqual([next.present()?.epoch]);
	expect(await broken()).toEqual([]);
	expect(await next.stop(5_000)).toBe(true);
});

test("a restored database repeats no epoch number of an earlier process", async () => {
	for (const number of [1, 2, 3]) {
		const instanceLease = await startHere("one");
		expect(instanceLease.present()?.epoch).toBe(number);
		expect(await instanceLease.stop(5_000)).toBe(true);
		expect(journals("one")).toEqual([]);
		await world.db.sql`truncate instance_beat`;
	}
});

test("a second change of the database server while an epoch ends loses no settlement", async () => {
	const instanceLease = await startHere("chased", 5_000);
	const running = await reserveHere(instanceLease, 500);
	await settleHere(instanceLease, 40);
	await waitFor(async () => (await usage()) === 1, "the settlement");
	const move = (name: string) =>
		world.db.sql.begin(async (sql) => {
			await sql`delete from usage_event`;
			await sql`update lease set settled_nano_usd = 0`;
			await moveToAnotherServer(sql, name);
		});
	await move("second");
	await waitFor(() => instanceLease.counts.sentAgain === 1, "the settlement to be there again");
	await waitFor(() => instanceLease.ledger()?.epoch === 2, "the next epoch");
	await move("third");
	// Settles a request, so that the first epoch ends before a heartbeat reaches the third server.
	running.ledger.settle(running, outcome(30));
	await waitFor(async () => (await usage()) === 2, "both settlements");
	await waitFor(() => instanceLease.ledger()?.epoch === 3, "the third epoch");
	await world.expectEnd(instanceLease, 70);
});

test("an older database server gets a kept journal's settlements and counts lost ones", async () => {
	const start = () => startHere("kept", 30_000, systemClock, silentLog, { keepMs: 60_000 });
	const first = await start();
	await settleHere(first, 40);
	expect(await first.stop(5_000)).toBe(true);
	// Simulates an older server, which lacks the epoch and a part of the credit.
	await world.db.sql`truncate instance_beat, lease, lease_op, usage_event, reservation`;
	await world.db.sql`update budget set drawn_nano_usd = 0`;
	await world.db.sql`select ledger_book('led_kept', 'acc', 'adjustment', ${30 - CREDIT}, 'kept', 'test', '', false)`;
	const next = await start();
	await next.recovered();
	const rows = await world.db.sql`select charged_nano_usd as charged, written_off_nano_usd as off from usage_event`;
	expect(rows.map(({ charged, off }) => [Number(charged), Number(off)])).toEqual([[30, 10]]);
	expect(next.counts).toMatchObject({ sentAgain: 1, writtenOffNanoUsd: 10 });
	expect(await next.stop(5_000)).toBe(true);
	expect(await broken()).toEqual([]);
});

test("an instance skips an epoch number that another database server assigns again", async () => {
	const instanceLease = await startHere("again", 5_000);
	const journal = join(world.dataDir, "journal/again/1");
	expect(existsSync(journal)).toBe(true);
	await world.db.sql.begin(async (sql) => {
		// Takes a lock that delays the join of the second epoch until the first has ended and the new server lacks its row.
		await sql`select pg_advisory_xact_lock(hashtextextended('instance again', 0))`;
		await moveToAnotherServer(world.db.sql);
		await waitFor(() => !existsSync(journal), "the end of the first epoch");
		await sql`delete from instance_beat where id = 'again'`;
	});
	await waitFor(() => instanceLease.ledger() !== undefined, "the next epoch");
	expect(instanceLease.ledger()?.epoch).toBe(2);
	expect(await instanceLease.stop(5_000)).toBe(true);
});

test("a stop sends settlements again to a database server that was replaced unnoticed", async () => {
	const instanceLease = await startHere("hurried");
	await settleHere(instanceLease, 40);
	await waitFor(async () => (await usage()) === 1, "the settlement");
	await world.db.sql.begin(async (sql) => {
		await sql`delete from usage_event`;
		await sql`update lease set settled_nano_usd = settled_nano_usd - 40`;
		await moveToAnotherServer(sql);
	});
	await world.expectEnd(instanceLease, 40);
	expect(await usage()).toBe(1);
});

test("a fenced instance sends settlements again to a server that lacks its epoch", async () => {
	const lines: string[] = [];
	const log = createLog({ level: "error", write: (line) => lines.push(line) });
	const instanceLease = await startHere("twice", 2_000, systemClock, log);
	const running = await reserveHere(instanceLease, 500);
	await settleHere(instanceLease, 40);
	await waitFor(async () => (await usage()) === 1, "the settlement");
	await world.db.sql`select instance_stand('twice', 1, null, array['live'], 'dead', null, null)`;
	await waitFor(() => instanceLease.ledger()?.epoch === 2, "the second epoch");
	// Simulates a server whose copy dates from before the first epoch joined.
	await world.db.sql.begin(async (sql) => {
		await moveToAnotherServer(sql);
		for (const table of ["usage_event", "lease_op", "lease", "reservation"]) await sql.unsafe(`delete from ${table}`);
		await sql`update budget set drawn_nano_usd = 0`;
		await sql`delete from instance_beat where epoch = 1`;
	});
	await waitFor(async () => (await usage()) === 1, "the settlement to be there again");
	await waitFor(() => instanceLease.ledger()?.epoch === 3, "the third epoch");
	const lost = lines.map((line) => JSON.parse(line)).filter(({ message }) => message.includes("acknowledged and lost"));
	expect(lost).toMatchObject([{ epoch: 1, settlements: 1 }]);
	running.ledger.settle(running, outcome(30));
	await waitFor(async () => (await usage()) === 2, "the last settlement");
	await world.expectEnd(instanceLease, 70);
});

test("a standby that lacks the last grants gets settlements and running requests", async () => {
	const instanceLease = await startHere("behind", 5_000);
	const running = await reserveHere(instanceLease, 500);
	await settleHere(instanceLease, 40);
	await waitFor(async () => (await usage()) === 1, "the settlement");
	const seq = await appendControl(world.db.statements, "key", "another key", {});
	const applied = async () =>
		(await world.db.sql`select 1 from instance_now where id = 'behind' and applied_seq >= ${seq}`).length === 1;
	await waitFor(applied, "the entry to be applied");
	await world.db.sql.begin(async (sql) => {
		await moveToAnotherServer(sql);
		await sql`delete from usage_event`;
		await sql`delete from lease_op`;
		await sql`delete from lease`;
		await sql`update budget set drawn_nano_usd = 0`;
		await sql`delete from control_log where seq = ${seq}`;
	});
	await waitFor(() => instanceLease.ledger()?.epoch === 2, "the next epoch");
	await waitFor(async () => (await usage()) === 1, "the settlement to be there again");
	expect(instanceLease.counts).toMatchObject({ sentAgain: 1, epochsMoved: 1 });
	running.ledger.settle(running, outcome(30));
	await firstLeft();
	await world.expectEnd(instanceLease, 70);
	expect(await usage()).toBe(2);
});
