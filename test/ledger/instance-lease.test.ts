import { afterAll, afterEach, beforeEach, expect, test } from "bun:test";
import {
	cpSync,
	existsSync,
	mkdirSync,
	mkdtempSync,
	readdirSync,
	renameSync,
	rmSync,
	symlinkSync,
	writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Clock } from "../../src/base/clock.ts";
import { systemClock } from "../../src/base/clock.ts";
import type { Log } from "../../src/base/log.ts";
import { createLog, silentLog } from "../../src/base/log.ts";
import { appendControl } from "../../src/cluster/control-log.ts";
import { createPgFenceStore } from "../../src/cluster/pg-fence-store.ts";
import type { Statements, StatementValue } from "../../src/db/statements.ts";
import type { InstanceLease } from "../../src/ledger/instance-lease.ts";
import { startInstanceLease } from "../../src/ledger/instance-lease.ts";
import { recoverLost } from "../../src/ledger/lost-journal.ts";
import { reconcile } from "../../src/ledger/reconcile.ts";
import { moveToAnotherServer } from "../support/another-server.ts";
import type { TestDatabase } from "../support/database.ts";
import { createTestDatabase } from "../support/database.ts";
import type { LeaseChild } from "../support/lease-child.ts";
import { startLeaseChild } from "../support/lease-child.ts";
import { createManualClock } from "../support/upstream-clock.ts";
import { waitFor } from "../support/wait.ts";
import { admitted, makeAccount, outcome, usd } from "./fixture.ts";

const root = mkdtempSync(join(tmpdir(), "tollgate-instance-lease-"));
const CREDIT = 1_000_000;
let db: TestDatabase;
let dataDir: string;
const children: LeaseChild[] = [];

beforeEach(async () => {
	db = await createTestDatabase();
	dataDir = mkdtempSync(join(root, "data-"));
	await makeAccount(db, "acc", CREDIT, { key: 500_000 });
});
afterEach(async () => {
	for (const child of children.splice(0)) await child.end();
	await db.drop();
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

async function startChild(instance: string, ttlMs = 30_000): Promise<LeaseChild> {
	const child = await startLeaseChild({ db, dataDir, instanceId: instance, ttlMs });
	children.push(child);
	return child;
}

/** At which entries of the control log an epoch began here: what was known before is forgotten then. */
let resets: number[] = [];

function startHere(
	instanceId: string,
	leaseTtlMs = 30_000,
	clock: Clock = systemClock,
	log: Log = silentLog,
): Promise<InstanceLease> {
	resets = [];
	return startInstanceLease(
		{ db, clock, log, apply: () => {}, reset: (seq) => resets.push(seq), onDiskFailed: () => {} },
		{ instanceId, dataDir, mode: "process", leaseTtlMs, flushIntervalMs: 10 },
	);
}

async function reserveHere(instanceLease: InstanceLease, amount: number) {
	for (;;) {
		const ledger = instanceLease.ledger();
		if (!ledger) throw new Error("the gate is closed");
		const hold = ledger.reserve({ ...admitted("acc", "key"), reserved: usd(amount) });
		if (hold) return hold;
		expect(await ledger.draw({ account: "acc", key: "key" }, usd(amount))).toBe(null);
	}
}

const broken = async () => (await reconcile(db.statements)).checks.filter(({ ok }) => !ok);
const openLeases = async () => (await db.sql`select 1 from lease where state = 'open'`).length;
const journals = (id: string) =>
	existsSync(join(dataDir, "journal", id)) ? readdirSync(join(dataDir, "journal", id)) : [];
const available = async () => {
	const [row] = await db.sql`select limit_nano_usd - drawn_nano_usd as available from budget where id = 'acc'`;
	return Number(row?.available);
};

test("an instance whose journal takes no records says so to whoever asks whether it admits", async () => {
	const options = { instanceId: "one", dataDir, mode: "process", leaseTtlMs: 30_000, segmentBytesMax: 500 } as const;
	const deps = { db, clock: systemClock, log: silentLog, apply: () => {}, reset: () => {}, onDiskFailed: () => {} };
	const instanceLease = await startInstanceLease(deps, options);
	try {
		expect(instanceLease.problem()).toBe(undefined);
		rmSync(join(dataDir, "journal"), { recursive: true });
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

/** It looks for its journal every ten seconds; here it does at once. */
const lookingOften = {
	...systemClock,
	after: (ms: number, then: () => void) => systemClock.after(ms === 10_000 ? 20 : ms, then),
};

/** Of a folder of journals, in which there is one. */
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
test.each(REMOVALS)(
	"an instance whose journal %s under it settles what runs, and goes on with a new one",
	async (_how, remove) => {
		const errors: string[] = [];
		const log = createLog({ level: "error", write: (line) => void errors.push(JSON.parse(line).message) });
		const instanceLease = await startHere("one", 30_000, lookingOften, log);
		const hold = await reserveHere(instanceLease, 100);
		hold.ledger.progress(hold, { delivered: usd(10), bound: usd(20), prompt: 1, completion: 1 });
		remove(join(dataDir, "journal"));
		await waitFor(
			() => instanceLease.present()?.epoch === 2 && instanceLease.problem() === undefined,
			"the next epoch",
		);
		expect(hold.ledger.settle(hold, outcome(60))).toMatchObject({ charged: usd(60), basis: "exact" });
		const next = await reserveHere(instanceLease, 100);
		await waitFor(() => journals("one").join() === "2", "the former journal to go");
		expect(errors).toEqual(["this instance's journal was removed under it: it begins a new epoch"]);
		expect(next.ledger.epoch).toBe(2);
		next.ledger.settle(next, outcome(40));
		expect(await instanceLease.stop(9_000)).toBe(true);
		expect([await available(), await openLeases(), await broken()]).toEqual([CREDIT - 100, 0, []]);
	},
);

test("an instance that has no place for a new journal says so, goes on when it has one, and leaves nothing of its attempts", async () => {
	const instanceLease = await startHere("one", 30_000, lookingOften);
	const journal = join(dataDir, "journal");
	rmSync(journal, { recursive: true });
	writeFileSync(journal, "");
	await waitFor(
		() => instanceLease.problem() === "the journal was removed; joining again",
		"the removal to be noticed",
	);
	const tries = async () => (await db.sql`select 1 from instance_now where epoch > 2`).length;
	await waitFor(async () => (await tries()) > 0, "another attempt");
	expect(instanceLease.problem()).toBe("the journal was removed; joining again");
	rmSync(journal);
	await waitFor(() => instanceLease.problem() === undefined, "the next epoch");
	expect(journals("one")).toEqual([String(instanceLease.present()?.epoch)]);
	expect((await db.sql`select 1 from instance_now where state in ('dead', 'closing', 'silent')`).length).toBe(0);
	expect(await instanceLease.stop(5_000)).toBe(true);
});

test("a start without room for its journal, or without a folder for it, says what to do", async () => {
	writeFileSync(join(dataDir, "journal"), "");
	await expect(startHere("one")).rejects.toThrow("DATA_DIR must be a folder of this user");
	rmSync(join(dataDir, "journal"));
	if (!existsSync("/dev/full")) return;
	// That attempt took the first number.
	mkdirSync(join(dataDir, "journal", "one", "2"), { recursive: true });
	symlinkSync("/dev/full", join(dataDir, "journal", "one", "2", "reserve"));
	await expect(startHere("one")).rejects.toThrow("make room on the disk of DATA_DIR");
	expect(journals("one")).toEqual([]);
	const instanceLease = await startHere("one");
	expect(await instanceLease.stop(5_000)).toBe(true);
});

test("after kill -9 the next start of the same identity charges what was delivered, and closes the leases", async () => {
	const child = await startChild("one");
	await child.ask("open done 100", "opened done");
	await child.ask("settle done 60", "settled done");
	await child.ask("open streaming 1000", "opened streaming");
	await child.ask("progress streaming 200 320", "progressed streaming");
	await child.ask("open silent 500", "opened silent");
	await child.end();
	expect(await available()).toBeLessThan(CREDIT - 60 - 320);

	const next = await startHere("one");
	await next.recovered();
	const rows =
		await db.sql`select charged_nano_usd as charged, basis, ending from usage_event order by charged_nano_usd`;
	expect(rows.map((row) => [Number(row.charged), row.basis, row.ending])).toEqual([
		[0, "recovered", "crashed"],
		[60, "exact", "finished"],
		[200, "recovered", "crashed"],
	]);
	expect((await db.sql`select 1 from ledger_entry where kind = 'credit_note'`).length).toBe(0);
	expect(await available()).toBe(CREDIT - 60 - 200);
	expect(await openLeases()).toBe(0);
	expect(journals("one")).toEqual(["2"]);
	expect(await broken()).toEqual([]);
	expect(await next.stop(5_000)).toBe(true);
});

/** What a crash left, while somebody holds the row of its account: the start of the next cannot hand it in. */
async function leftBehind(): Promise<{ free: () => Promise<void> }> {
	const child = await startChild("one");
	await child.ask("open streaming 1000", "opened streaming");
	await child.ask("progress streaming 200 320", "progressed streaming");
	await child.end();
	const [held, freed] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
	const holding = db.sql.begin(async (transaction) => {
		await transaction`select 1 from lease for update`;
		held.resolve();
		await freed.promise;
	});
	await held.promise;
	return {
		async free() {
			freed.resolve();
			await holding;
		},
	};
}

test("a stop in the first moments after a crash hands its journal in before it ends", async () => {
	const { free } = await leftBehind();
	const next = await startHere("one");
	const stopped = next.stop(20_000);
	await free();
	expect(await stopped).toBe(true);
	expect(journals("one")).toEqual([]);
	expect(await openLeases()).toBe(0);
	expect(await available()).toBe(CREDIT - 200);
});

test("a stop whose time is over before that says so, and the next start goes on with it", async () => {
	const { free } = await leftBehind();
	const lines: string[] = [];
	const log = createLog({ level: "info", write: (line) => void lines.push(line) });
	const next = await startHere("one", 30_000, systemClock, log);
	expect(await next.stop(300)).toBe(false);
	expect(lines.join("")).toContain("the next start goes on with it");
	await waitFor(() => lines.join("").includes("could not be handed in"), "the replay to end");
	expect(journals("one")).toContain("1");
	await free();
	const last = await startHere("one");
	await last.recovered();
	expect(await available()).toBe(CREDIT - 200);
	expect(await last.stop(5_000)).toBe(true);
	expect(journals("one")).toEqual([]);
});

test("a database that was restored to an older state and gives an epoch's number again loses nothing of its journal", async () => {
	const child = await startChild("one");
	await child.ask("open done 100", "opened done");
	await child.ask("settle done 60", "settled done");
	await child.ask("open streaming 1000", "opened streaming");
	await child.ask("progress streaming 200 320", "progressed streaming");
	await child.end();
	// As it was before this instance came.
	await db.sql`truncate instance_beat, lease, lease_op, usage_event, reservation`;
	await db.sql`update budget set drawn_nano_usd = 0`;

	const next = await startHere("one");
	await next.recovered();
	const rows = await db.sql`select charged_nano_usd as charged from usage_event order by charged_nano_usd`;
	expect(rows.map((row) => Number(row.charged))).toEqual([60, 200]);
	expect(await available()).toBe(CREDIT - 60 - 200);
	expect(journals("one")).toEqual([String(next.present()?.epoch)]);
	const open = await db.sql`select epoch from instance_now where id = 'one' and state <> 'left'`;
	expect(open.map(({ epoch }) => epoch)).toEqual([next.present()?.epoch]);
	expect(await broken()).toEqual([]);
	expect(await next.stop(5_000)).toBe(true);
});

test("an instance stops admitting a margin before its lease ends, of two seconds or a fifth of it", async () => {
	for (const [leaseTtlMs, marginMs] of [
		[30_000, 2_000],
		[5_000, 1_000],
	] as const) {
		const clock = createManualClock();
		const instanceLease = await startHere(`margin-${leaseTtlMs}`, leaseTtlMs, clock);
		// In one turn, in which no heartbeat is answered.
		clock.advance(leaseTtlMs - marginMs - 1);
		expect(instanceLease.ledger()).toBeDefined();
		clock.advance(1);
		expect(instanceLease.ledger()).toBeUndefined();
		await instanceLease.stop(5_000);
	}
});

test("what a process leaves that ends beside another one is handed in by the one that lives, without a start", async () => {
	const child = await startChild("beside");
	const clock = createManualClock();
	const instanceLease = await startHere("living", 30_000, clock);
	await instanceLease.recovered();
	await child.ask("open done 100", "opened done");
	await child.ask("settle done 60", "settled done");
	await child.ask("open streaming 1000", "opened streaming");
	await child.end();
	expect(journals("beside")).toHaveLength(1);
	clock.advance(10_000);
	await instanceLease.recovered();
	expect(journals("beside")).toEqual([]);
	expect((await db.sql`select request_id from usage_event`).length).toBe(2);
	expect(await broken()).toEqual([]);
	expect(await instanceLease.stop(5_000)).toBe(true);
	expect(await openLeases()).toBe(0);
});

test("while a journal waits for rows that somebody holds, what another process leaves then is handed in", async () => {
	const second = await startChild("two");
	const { free } = await leftBehind();
	const lines: string[] = [];
	const log = createLog({ level: "info", write: (line) => void lines.push(line) });
	// It looks for journals every ten seconds, and every five for those that wait.
	const after: Clock["after"] = (ms, then) => systemClock.after(ms === 10_000 || ms === 5_000 ? 200 : ms, then);
	const instanceLease = await startHere("here", 30_000, { ...systemClock, after }, log);
	await waitFor(() => lines.join("").includes("replaying a journal"), "the first to be replayed");
	await second.ask("open done 1000", "opened done");
	await second.ask("settle done 300", "settled done");
	await second.ask("open running 1000", "opened running");
	await second.end();
	await waitFor(() => journals("two").length === 0, "the later journal to be handed in");
	expect(journals("one")).toEqual(["1"]);
	await free();
	await waitFor(() => journals("one").length === 0, "the first to be handed in");
	// Not the five seconds that its clock makes shorter.
	expect(await instanceLease.stop(30_000)).toBe(true);
	expect([await openLeases(), await available(), await broken()]).toEqual([0, CREDIT - 500, []]);
});

test("a stop in good order settles, returns everything and leaves no journal", async () => {
	const child = await startChild("tidy");
	await child.ask("open a 100", "opened a");
	await child.ask("settle a 70", "settled a");
	expect(await child.ask("stop", "stopped")).toBe("stopped true");
	await child.process.exited;
	expect(await available()).toBe(CREDIT - 70);
	expect(await openLeases()).toBe(0);
	expect(journals("tidy")).toEqual([]);
	expect((await db.sql`select state from instance_now`).map((row) => row.state)).toEqual(["left"]);
	expect(await broken()).toEqual([]);
});

test("the journal of a process that is only stopped (SIGSTOP) is not replayed, neither by its identity nor by others", async () => {
	const child = await startChild("asleep");
	await child.ask("open a 100", "opened a");
	child.process.kill("SIGSTOP");
	const same = await startHere("asleep");
	const other = await startHere("other");
	await Promise.all([same.recovered(), other.recovered()]);
	expect(journals("asleep").sort()).toEqual(["1", "2"]);
	expect((await db.sql`select 1 from usage_event`).length).toBe(0);
	child.process.kill("SIGCONT");
	await child.ask("settle a 40", "settled a");
	await waitFor(
		async () => (await db.sql`select 1 from usage_event where charged_nano_usd = 40`).length === 1,
		"its settlement",
	);
	expect(await child.ask("stop", "stopped")).toBe("stopped true");
	expect(await same.stop(5_000)).toBe(true);
	expect(await other.stop(5_000)).toBe(true);
	expect(await available()).toBe(CREDIT - 40);
	expect(await broken()).toEqual([]);
});

test("another instance on the same machine replays for one that does not come back", async () => {
	const child = await startChild("gone");
	await child.ask("open a 1000", "opened a");
	await child.ask("progress a 30 50", "progressed a");
	await child.end();
	const other = await startHere("beside");
	await other.recovered();
	expect(await available()).toBe(CREDIT - 30);
	expect(await broken()).toEqual([]);
	expect(await other.stop(5_000)).toBe(true);
});

test("a fenced instance settles what still runs and goes on in a new epoch", async () => {
	const instanceLease = await startHere("fenced", 2_000);
	const hold = await reserveHere(instanceLease, 500);
	await db.sql`select instance_stand('fenced', 1, null, array['live'], 'dead', null, null)`;
	await waitFor(() => instanceLease.ledger()?.epoch === 2, "the next epoch");
	expect(resets.length).toBe(2);
	expect(() => hold.ledger.reserve({ ...admitted("acc", "key"), reserved: usd(1) })).toThrow();
	hold.ledger.settle(hold, outcome(123));
	await waitFor(
		async () => (await db.sql`select 1 from instance_now where epoch = 1 and state = 'left'`).length === 1,
		"its end",
	);
	const later = await reserveHere(instanceLease, 500);
	later.ledger.settle(later, outcome(7));
	expect(await instanceLease.stop(5_000)).toBe(true);
	expect(await available()).toBe(CREDIT - 130);
	expect(journals("fenced")).toEqual([]);
	expect(await broken()).toEqual([]);
});

test("credit that is taken away is taken from what lies free on every instance, while their requests run", async () => {
	const instanceLease = await startHere("told");
	const hold = await reserveHere(instanceLease, 500);
	const free = () => [...(instanceLease.present()?.slices() ?? [])].find(({ budget }) => budget === "acc")?.free ?? 0;
	await waitFor(() => free() > 0, "a slice with room");
	await db.sql`select ledger_book('e1', 'acc', 'adjustment', -10, 'less', 'test', '', false)`;
	await waitFor(() => free() === 0, "the slice to be handed back");
	await waitFor(async () => (await available()) === CREDIT - 10 - 500, "it to have arrived");
	hold.ledger.settle(hold, outcome(5));
	expect(await instanceLease.stop(5_000)).toBe(true);
	expect(await available()).toBe(CREDIT - 15);
	expect(await broken()).toEqual([]);
});

test("on another server a new epoch begins, and what that server does not know of the last seconds it is told again", async () => {
	const instanceLease = await startHere("moved", 5_000);
	const settle = await reserveHere(instanceLease, 500);
	const { id } = settle.admitted;
	settle.ledger.settle(settle, outcome(40));
	const known = async () => (await db.sql`select 1 from usage_event where request_id = ${id}`).length === 1;
	await waitFor(known, "the settlement");
	// A standby that was behind: it has the grant, and not what was charged to it.
	await db.sql.begin(async (sql) => {
		await sql`delete from usage_event where request_id = ${id}`;
		await sql`update lease set settled_nano_usd = settled_nano_usd - 40`;
		await moveToAnotherServer(sql);
	});
	await waitFor(() => instanceLease.ledger()?.epoch === 2, "the next epoch");
	await waitFor(known, "the settlement to be there again");
	await waitFor(
		async () => (await db.sql`select 1 from instance_now where epoch = 1 and state = 'left'`).length === 1,
		"the end of the first epoch",
	);
	expect(await instanceLease.stop(5_000)).toBe(true);
	expect(await available()).toBe(CREDIT - 40);
	expect(await broken()).toEqual([]);
});

test("a number that another server gives again is not taken again: what its epoch sent before may still be on its way", async () => {
	const instanceLease = await startHere("again", 5_000);
	const journal = join(dataDir, "journal/again/1");
	expect(existsSync(journal)).toBe(true);
	await db.sql.begin(async (sql) => {
		// The next one joins when the first is over, and the server does not know that one.
		await sql`select pg_advisory_xact_lock(hashtextextended('instance again', 0))`;
		await moveToAnotherServer(db.sql);
		await waitFor(() => !existsSync(journal), "the end of the first epoch");
		await sql`delete from instance_beat where id = 'again'`;
	});
	await waitFor(() => instanceLease.ledger() !== undefined, "the next epoch");
	expect(instanceLease.ledger()?.epoch).toBe(2);
	expect(await instanceLease.stop(5_000)).toBe(true);
});

test("a stop that comes before anybody has noticed that the database moved leaves nothing behind there either", async () => {
	const instanceLease = await startHere("hurried");
	const settle = await reserveHere(instanceLease, 500);
	settle.ledger.settle(settle, outcome(40));
	const usage = async () => (await db.sql`select 1 from usage_event`).length;
	await waitFor(async () => (await usage()) === 1, "the settlement");
	await db.sql.begin(async (sql) => {
		await sql`delete from usage_event`;
		await sql`update lease set settled_nano_usd = settled_nano_usd - 40`;
		await moveToAnotherServer(sql);
	});
	expect(await instanceLease.stop(5_000)).toBe(true);
	expect(await usage()).toBe(1);
	expect(await available()).toBe(CREDIT - 40);
	expect(await broken()).toEqual([]);
});

test("an epoch that was fenced off before the database moved tells again too, though the new server does not know it", async () => {
	const lines: string[] = [];
	const log = createLog({ level: "error", write: (line) => lines.push(line) });
	const instanceLease = await startHere("twice", 2_000, systemClock, log);
	const [done, running] = [await reserveHere(instanceLease, 500), await reserveHere(instanceLease, 500)];
	done.ledger.settle(done, outcome(40));
	const usage = async () => (await db.sql`select 1 from usage_event`).length;
	await waitFor(async () => (await usage()) === 1, "the settlement");
	await db.sql`select instance_stand('twice', 1, null, array['live'], 'dead', null, null)`;
	await waitFor(() => instanceLease.ledger()?.epoch === 2, "the second epoch");
	// The copy is of a moment before the first one joined.
	await db.sql.begin(async (sql) => {
		await moveToAnotherServer(sql);
		for (const table of ["usage_event", "lease_op", "lease", "reservation"]) await sql.unsafe(`delete from ${table}`);
		await sql`update budget set drawn_nano_usd = 0`;
		await sql`delete from instance_beat where epoch = 1`;
	});
	await waitFor(async () => (await usage()) === 1, "the settlement to be there again");
	await waitFor(() => instanceLease.ledger()?.epoch === 3, "the third epoch");
	const lost = lines.map((line) => JSON.parse(line)).filter(({ message }) => message.includes("had lost settlements"));
	expect(lost).toMatchObject([{ epoch: 1, settlements: 1 }]);
	running.ledger.settle(running, outcome(30));
	await waitFor(async () => (await usage()) === 2, "the last settlement");
	expect(await instanceLease.stop(5_000)).toBe(true);
	expect(await available()).toBe(CREDIT - 70);
	expect(await broken()).toEqual([]);
});

test("a standby that lacks grants and entries: what was settled is told again, what runs settles, and nothing waits for what is forgotten", async () => {
	const instanceLease = await startHere("behind", 5_000);
	const [before, running] = [await reserveHere(instanceLease, 500), await reserveHere(instanceLease, 500)];
	before.ledger.settle(before, outcome(40));
	const usage = async () => (await db.sql`select 1 from usage_event`).length;
	await waitFor(async () => (await usage()) === 1, "the settlement");
	const seq = await appendControl(db.statements, "key", "another key", {});
	const applied = async () =>
		(await db.sql`select 1 from instance_now where id = 'behind' and applied_seq >= ${seq}`).length === 1;
	await waitFor(applied, "the entry to be applied");
	await db.sql.begin(async (sql) => {
		await moveToAnotherServer(sql);
		await sql`delete from usage_event`;
		await sql`delete from lease_op`;
		await sql`delete from lease`;
		await sql`update budget set drawn_nano_usd = 0`;
		await sql`delete from control_log where seq = ${seq}`;
	});
	await waitFor(() => instanceLease.ledger()?.epoch === 2, "the next epoch");
	await waitFor(async () => (await usage()) === 1, "the settlement to be there again");
	running.ledger.settle(running, outcome(30));
	await waitFor(
		async () => (await db.sql`select 1 from instance_now where epoch = 1 and state = 'left'`).length === 1,
		"the end of the first epoch",
	);
	expect(await instanceLease.stop(5_000)).toBe(true);
	expect(await usage()).toBe(2);
	expect(await available()).toBe(CREDIT - 70);
	expect(await broken()).toEqual([]);
});

test("a stop that runs out of time leaves the running request to the next start, and closes no lease before it", async () => {
	const instanceLease = await startHere("hasty");
	const hold = await reserveHere(instanceLease, 500);
	hold.ledger.progress(hold, { delivered: usd(10), bound: usd(20), prompt: 1, completion: 1 });
	expect(await instanceLease.stop(50)).toBe(false);
	expect(await openLeases()).toBe(2);
	// Its end comes while the process is about to go.
	expect(hold.ledger.settle(hold, outcome(15))).toMatchObject({ charged: usd(10), basis: "recovered" });
	const next = await startHere("hasty");
	await next.recovered();
	expect(await available()).toBe(CREDIT - 10);
	expect(await next.stop(5_000)).toBe(true);
	expect(await broken()).toEqual([]);
});

test("an operator's attestation closes what Postgres knows, and is refused while the instance may be running", async () => {
	const child = await startChild("lost", 1_500);
	await child.ask("open a 1000", "opened a");
	await waitFor(async () => (await db.sql`select 1 from reservation`).length === 1, "the reservation");
	const attest = () =>
		recoverLost({ statements: db.statements, fence: createPgFenceStore(db.liveness), clock: systemClock }, "lost", {
			graceMs: 200,
		});
	await expect(attest()).rejects.toMatchObject({ code: "conflict" });
	await child.end();
	rmSync(join(dataDir, "journal"), { recursive: true });
	const killedMs = performance.now();
	expect(await attest()).toEqual({ epochs: 1, leases: 2 });
	// By our own clock, from when its last beat was seen.
	expect(performance.now() - killedMs).toBeGreaterThan(1_500);
	expect(await available()).toBe(CREDIT);
	const [row] = await db.sql`select charged_nano_usd as charged, basis, ending from usage_event`;
	expect([Number(row?.charged), row?.basis, row?.ending]).toEqual([0, "recovered", "crashed"]);
	expect(await broken()).toEqual([]);
});

test("an attestation is refused if the instance joins while it waits, whether or not that one ever lives", async () => {
	const child = await startChild("again");
	await child.end();
	const deps = { statements: db.statements, fence: createPgFenceStore(db.liveness), clock: systemClock };
	let answer: unknown;
	const attested = recoverLost(deps, "again", { graceMs: 200 }).catch((error: unknown) => (answer = error));
	await waitFor(async () => {
		await db.sql`select instance_join('again', 60000)`;
		return answer !== undefined;
	}, "the refusal");
	await attested;
	expect(answer).toMatchObject({ code: "conflict", message: "Instance again is running: it has joined again." });
});

test("an attestation is refused though the instance was silent when it began, if it is back before its leases are closed", async () => {
	const instanceLease = await startHere("back");
	const hold = await reserveHere(instanceLease, 1_000);
	const fence = createPgFenceStore(db.liveness);
	const standing = async () =>
		(await db.sql`select epoch, beat, state from instance_now where id = 'back' order by epoch desc`)[0];
	const found = await standing();
	await fence.silent("back", found?.epoch, found?.beat);
	// It has a thousand leases to close besides, or is itself held up here: long enough for a heartbeat.
	const slow: Statements = Object.assign(
		async <Row>(strings: TemplateStringsArray, ...values: readonly StatementValue[]) => {
			if (/lease_close/.test(strings.join(" ")))
				await waitFor(async () => (await standing())?.state !== "silent", "it");
			return db.statements<Row>(strings, ...values);
		},
		{ end: async () => {} },
	);
	const slowFence = {
		async fenceOff(id: string, epoch: number, beat: number) {
			await waitFor(async () => (await standing())?.state !== "silent", "it to be back");
			await fence.fenceOff(id, epoch, beat);
		},
	};
	const attested = recoverLost({ statements: slow, fence: slowFence, clock: systemClock }, "back", { graceMs: 200 });
	await expect(attested).rejects.toMatchObject({ code: "conflict" });
	expect(await standing()).toMatchObject({ epoch: found?.epoch, state: "live" });
	hold.ledger.settle(hold, outcome(40));
	expect(await instanceLease.stop(5_000)).toBe(true);
	expect(await available()).toBe(CREDIT - 40);
	expect(await broken()).toEqual([]);
	// One that does not come back is not waited for again.
	const child = await startChild("gone");
	await child.end();
	const [gone] = await db.sql`select epoch, beat from instance_now where id = 'gone'`;
	await fence.silent("gone", gone?.epoch, gone?.beat);
	const deps = { statements: db.statements, fence, clock: systemClock };
	expect(await recoverLost(deps, "gone", { graceMs: 200 })).toMatchObject({ epochs: 1 });
});
