import { expect, test } from "bun:test";
import { cpSync, existsSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "../../src/base/clock.ts";
import { createLog, silentLog } from "../../src/base/log.ts";
import { createManualClock } from "../support/upstream-clock.ts";
import { waitFor } from "../support/wait.ts";
import { admittedEvent, outcome, usd } from "./fixture.ts";
import { CREDIT, withLeases } from "./lease-world.ts";

const world = withLeases();
const { startChild, startHere, reserveHere, broken, openLeases, journals, available } = world;

test("an instance reports that its journal cannot write records", async () => {
	const instanceLease = await startHere("one", 30_000, systemClock, silentLog, { segmentBytesMax: 500 });
	try {
		expect(instanceLease.problem()).toBe(undefined);
		rmSync(join(world.dataDir, "journal"), { recursive: true });
		const holds = async () => {
			for (let at = 0; at < 10; at++) await reserveHere(instanceLease, 10);
		};
		await expect(holds()).rejects.toThrow("The service cannot record usage right now.");
		expect(instanceLease.gate.isOpen()).toBe(true);
		expect(instanceLease.problem()).toBe("the journal cannot be written");
	} finally {
		await instanceLease.stop(0);
	}
	expect(instanceLease.problem()).toBe("stopping");
});

/** A clock with which an instance looks for its journal every 20 ms instead of every ten seconds. */
const lookingOften = {
	...systemClock,
	after: (ms: number, then: () => void) => systemClock.after(ms === 10_000 ? 20 : ms, then),
};

/** Ways to remove parts of a data folder that contains one journal. */
const REMOVALS: readonly [string, (folder: string) => void][] = [
	["is removed", (folder) => rmSync(folder, { recursive: true })],
	["loses its lock", (folder) => rmSync(join(folder, "one", "1", "lock"))],
	["loses a segment", (folder) => rmSync(join(folder, "one", "1", "00000001.log"))],
	[
		"is replaced by a copy",
		(folder) => {
			renameSync(folder, `${folder}.moved`);
			cpSync(`${folder}.moved`, folder, { recursive: true });
		},
	],
];
test.each(REMOVALS)("an instance starts a new epoch when its journal %s", async (_how, remove) => {
	const errors: string[] = [];
	const log = createLog({ level: "error", write: (line) => void errors.push(JSON.parse(line).message) });
	const instanceLease = await startHere("one", 30_000, lookingOften, log);
	const hold = await reserveHere(instanceLease, 100);
	hold.ledger.progress(hold, { delivered: usd(10), bound: usd(20), promptTokens: 1, completionTokens: 1 });
	remove(join(world.dataDir, "journal"));
	await waitFor(() => instanceLease.present()?.epoch === 2 && instanceLease.problem() === undefined, "the next epoch");
	expect(hold.ledger.settle(hold, outcome(60))).toMatchObject({ charged: usd(60), basis: "exact" });
	const next = await reserveHere(instanceLease, 100);
	await waitFor(() => journals("one").join() === "2", "the former journal to go");
	expect(errors).toEqual(["the journal of this instance was removed: beginning a new epoch"]);
	expect(next.ledger.epoch).toBe(2);
	next.ledger.settle(next, outcome(40));
	expect(await instanceLease.stop(9_000)).toBe(true);
	expect([await available(), await openLeases(), await broken()]).toEqual([CREDIT - 100, 0, []]);
});

test("an instance retries to create a journal until the disk has room", async () => {
	const instanceLease = await startHere("one", 30_000, lookingOften);
	const journal = join(world.dataDir, "journal");
	rmSync(journal, { recursive: true });
	writeFileSync(journal, "");
	await waitFor(
		() => instanceLease.problem() === "the journal was removed; joining again",
		"the removal to be noticed",
	);
	const tries = async () => (await world.db.sql`select 1 from instance_now where epoch > 2`).length;
	await waitFor(async () => (await tries()) > 0, "another attempt");
	expect(instanceLease.problem()).toBe("the journal was removed; joining again");
	rmSync(journal);
	await waitFor(() => instanceLease.problem() === undefined, "the next epoch");
	expect(journals("one")).toEqual([String(instanceLease.present()?.epoch)]);
	expect((await world.db.sql`select 1 from instance_now where state in ('dead', 'closing', 'silent')`).length).toBe(0);
	expect(await instanceLease.stop(5_000)).toBe(true);
});

test("a start without disk space or a journal folder fails and names the remedy", async () => {
	writeFileSync(join(world.dataDir, "journal"), "");
	await expect(startHere("one")).rejects.toThrow("DATA_DIR must be a folder of this user");
	rmSync(join(world.dataDir, "journal"));
	if (!existsSync("/dev/full")) return;
	// The failed start above used epoch 1, so this journal has number 2.
	mkdirSync(join(world.dataDir, "journal", "one", "2"), { recursive: true });
	symlinkSync("/dev/full", join(world.dataDir, "journal", "one", "2", "reserve"));
	await expect(startHere("one")).rejects.toThrow("make room on the disk of DATA_DIR");
	expect(journals("one")).toEqual([]);
	const instanceLease = await startHere("one");
	expect(await instanceLease.stop(5_000)).toBe(true);
});

test("an instance stops admitting a fifth of its lease, or 2 s, before the lease ends", async () => {
	for (const [leaseTtlMs, marginMs] of [
		[30_000, 2_000],
		[5_000, 1_000],
	] as const) {
		const clock = createManualClock();
		const instanceLease = await startHere(`margin-${leaseTtlMs}`, leaseTtlMs, clock);
		// Advances a manual clock within one turn of the event loop, so that no heartbeat is answered in it.
		clock.advance(leaseTtlMs - marginMs - 1);
		expect(instanceLease.ledger()).toBeDefined();
		clock.advance(1);
		expect(instanceLease.ledger()).toBeUndefined();
		await instanceLease.stop(5_000);
	}
});

test("an instance's orderly stop settles, returns all credit and deletes its journal", async () => {
	const child = await startChild("tidy");
	await child.acts("open a 100", "settle a 70");
	expect(await child.ask("stop", "stopped")).toBe("stopped true");
	await child.process.exited;
	expect(await available()).toBe(CREDIT - 70);
	expect(await openLeases()).toBe(0);
	expect(journals("tidy")).toEqual([]);
	expect((await world.db.sql`select state from instance_now`).map((row) => row.state)).toEqual(["left"]);
	expect(await broken()).toEqual([]);
});

test("a fenced instance settles running requests and joins with a new epoch", async () => {
	const instanceLease = await startHere("fenced", 2_000);
	const hold = await reserveHere(instanceLease, 500);
	await world.db.sql`select instance_stand('fenced', 1, null, array['live'], 'dead', null, null)`;
	await waitFor(() => instanceLease.ledger()?.epoch === 2, "the next epoch");
	expect(world.resets.length).toBe(2);
	expect(() => hold.ledger.reserve({ ...admittedEvent("acc", "key"), reserved: usd(1) })).toThrow();
	hold.ledger.settle(hold, outcome(123));
	await waitFor(
		async () => (await world.db.sql`select 1 from instance_now where epoch = 1 and state = 'left'`).length === 1,
		"its end",
	);
	await world.settleHere(instanceLease, 7);
	await world.expectEnd(instanceLease, 130);
	expect(journals("fenced")).toEqual([]);
});

test("each instance returns its free credit when an account's credit is lowered", async () => {
	const instanceLease = await startHere("told");
	const hold = await reserveHere(instanceLease, 500);
	const free = () => [...(instanceLease.present()?.slices() ?? [])].find(({ budget }) => budget === "acc")?.free ?? 0;
	await waitFor(() => free() > 0, "a slice with room");
	await world.db.sql`select ledger_book('e1', 'acc', 'adjustment', -10, 'less', 'test', '', false)`;
	await waitFor(() => free() === 0, "the slice to be handed back");
	await waitFor(async () => (await available()) === CREDIT - 10 - 500, "it to have arrived");
	hold.ledger.settle(hold, outcome(5));
	await world.expectEnd(instanceLease, 15);
});

test("a stop leaves requests that outlast the drain time to the next start", async () => {
	const instanceLease = await startHere("hasty");
	const hold = await reserveHere(instanceLease, 500);
	hold.ledger.progress(hold, { delivered: usd(10), bound: usd(20), promptTokens: 1, completionTokens: 1 });
	expect(await instanceLease.stop(50)).toBe(false);
	expect(await openLeases()).toBe(2);
	// After the drain time, the request is charged by its journalled progress, as the replay at the next start would.
	expect(hold.ledger.settle(hold, outcome(15))).toMatchObject({ charged: usd(10), basis: "recovered" });
	const next = await startHere("hasty");
	await next.recovered();
	await world.expectEnd(next, 10);
});

test("a fenced instance that stops reports settlements that it leaves to a replay", async () => {
	const { db } = world;
	const instanceLease = await startHere("fenced", 2_000, systemClock, silentLog, { fencedDrainMs: 300 });
	await reserveHere(instanceLease, 500);
	const crashed = await startHere("crashed");
	const left = await reserveHere(crashed, 500);
	left.ledger.progress(left, { delivered: usd(10), bound: usd(20), promptTokens: 1, completionTokens: 1 });
	expect(await crashed.stop(50)).toBe(false);
	let stopped: Promise<boolean> | undefined;
	await db.sql.begin(async (holder) => {
		await holder`select 1 from budget where id = 'acc' for update`;
		await db.sql`select instance_stand('fenced', 1, null, array['live'], 'dead', null, null)`;
		await waitFor(() => instanceLease.ledger()?.epoch === 2, "the next epoch");
		stopped = instanceLease.stop(10_000);
		await Bun.sleep(1_000);
	});
	expect(await stopped).toBe(false);
	expect([journals("fenced"), journals("crashed")]).toEqual([["1"], []]);
});
