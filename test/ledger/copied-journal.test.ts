/** A folder of journals that was copied, as a snapshot of a volume that is started beside its original. */
import { afterEach, beforeEach, expect, spyOn, test } from "bun:test";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "../../src/base/clock.ts";
import { libc } from "../../src/base/libc.ts";
import { createLog } from "../../src/base/log.ts";
import type { InstanceLease } from "../../src/ledger/instance-lease.ts";
import { startInstanceLease } from "../../src/ledger/instance-lease.ts";
import type { Hold, Ledger } from "../../src/ledger/ledger.ts";
import { reconcile } from "../../src/ledger/reconcile.ts";
import { nanoUsd } from "../../src/money/nano-usd.ts";
import { temporaryFolder } from "../support/at-end.ts";
import type { TestDatabase } from "../support/database.ts";
import { createTestDatabase } from "../support/database.ts";
import type { LeaseChild } from "../support/lease-child.ts";
import { startLeaseChild } from "../support/lease-child.ts";
import { LONG } from "../support/long-form.ts";
import { waitFor } from "../support/wait.ts";
import { admitted, makeAccount, outcome } from "./fixture.ts";

const root = temporaryFolder();
let db: TestDatabase;
let original: string;
let copy: string;
let child: LeaseChild;
const started: InstanceLease[] = [];
let lines: { level: string; message: string }[] = [];

beforeEach(async () => {
	db = await createTestDatabase();
	original = mkdtempSync(join(root, "original-"));
	copy = mkdtempSync(join(root, "copy-"));
	lines = [];
	await makeAccount(db, "acc", 1_000_000, { key: 500_000 });
});
afterEach(async () => {
	await child?.end();
	for (const one of started.splice(0)) await one.stop(1_000);
	await db.drop();
});

/** One request that is settled there, one that runs; others of that process have done nothing yet. */
async function serveThere(ttlMs: number, ...others: readonly string[]): Promise<void> {
	child = await startLeaseChild({ db, dataDir: original, instanceId: ["one", ...others].join(), ttlMs });
	await child.ask("open done 100", "opened done");
	await child.ask("settle done 60", "settled done");
	await child.ask("open streaming 1000", "opened streaming");
	await child.ask("progress streaming 200 320", "progressed streaming");
}

function copyAll(): void {
	expect(Bun.spawnSync(["cp", "-a", `${original}/.`, copy]).success).toBe(true);
}

/** It looks for journals every ten seconds; here it does more often. */
const clock = {
	...systemClock,
	after: (ms: number, then: () => void) => systemClock.after(ms === 10_000 ? 200 : ms, then),
};

async function startOn(dataDir: string, instanceId: string, leaseTtlMs = 30_000): Promise<InstanceLease> {
	const log = createLog({ level: "info", write: (line) => void lines.push(JSON.parse(line)) });
	const one = await startInstanceLease(
		{ db, clock, log, apply: () => {}, reset: () => {}, onDiskFailed: () => {} },
		{ instanceId, dataDir, mode: "process", leaseTtlMs, flushIntervalMs: 10 },
	);
	started.push(one);
	return one;
}

async function untilLeftAlone(folder: string): Promise<void> {
	await waitFor(
		() => says("a journal is a copy of one whose instance runs; it is left alone"),
		"the journal to be left",
	);
	expect(existsSync(join(folder, "00000001.log"))).toBe(true);
}

/** It was not fenced off, and hands all back in order. */
async function endThere(): Promise<void> {
	await child.ask("settle streaming 700", "settled streaming");
	await child.ask("stop", "stopped true");
	expect(await charges()).toEqual([
		[60, "exact"],
		[700, "exact"],
	]);
	expect((await reconcile(db.statements)).checks.filter(({ ok }) => !ok)).toEqual([]);
}

const says = (message: string) => lines.some((line) => line.message === message);
const charges = async () =>
	(await db.sql`select charged_nano_usd, basis from usage_event order by charged_nano_usd`).map((row) => [
		Number(row.charged_nano_usd),
		row.basis,
	]);

/** What was a whole copy, and says less of what it is or where it came from. */
const ALTERED: readonly [string, (folder: string) => void][] = [
	["was left out", (folder) => rmSync(join(folder, "lock"))],
	["is empty, as a former version left it,", (folder) => writeFileSync(join(folder, "lock"), "")],
	["is cut off", (folder) => writeFileSync(join(folder, "lock"), "0")],
];
/** Beside the original, under another name of the instance, of the epoch: what is copied where, and the journal in it. */
const BESIDE = [
	["one", "one.bak", "one.bak/1"],
	["one/1", "one/20261126", "one/20261126"],
] as const;

test("a copy is left alone while its instance runs, whatever it is started as, says of itself or is called; the instance settles what it used", async () => {
	await serveThere(30_000);
	const journals = join(original, "journal");
	copyAll();
	const whole = join(copy, "journal", "one", "1");
	for (const [what, alter] of ALTERED) {
		const folder = mkdtempSync(join(root, "altered-"));
		expect([what, Bun.spawnSync(["cp", "-a", `${copy}/.`, folder]).success]).toEqual([what, true]);
		alter(join(folder, "journal", "one", "1"));
		await leftAlone(folder, "another", join(folder, "journal", "one", "1"));
	}
	for (const name of ["one", "another"]) await leftAlone(copy, name, whole);
	for (const [from, to, at] of BESIDE) {
		expect(Bun.spawnSync(["cp", "-a", join(journals, from), join(journals, to)]).success).toBe(true);
		await leftAlone(original, "another", join(journals, at));
		rmSync(join(journals, to), { recursive: true });
	}
	await endThere();
}, 60_000);

/** Started there, it leaves the journal alone, and stops. */
async function leftAlone(dataDir: string, instanceId: string, folder: string): Promise<void> {
	lines = [];
	const one = await startOn(dataDir, instanceId);
	await untilLeftAlone(folder);
	await one.stop(1_000);
}

test("a copy is left alone while its instance is being stopped and settles what runs", async () => {
	const instanceLease = await startOn(original, "one");
	const ledger = () => instanceLease.ledger() as Ledger;
	await ledger().draw({ account: "acc", key: "key" }, nanoUsd(1_000));
	const hold = ledger().reserve({ ...admitted("acc", "key"), reserved: nanoUsd(1_000) }) as Hold;
	hold.ledger.progress(hold, { delivered: nanoUsd(200), bound: nanoUsd(320), prompt: 1, completion: 1 });
	copyAll();
	const stopped = instanceLease.stop(60_000);
	const left = async () => (await db.sql`select 1 from instance_now where id = 'one' and state = 'dead'`).length === 1;
	await waitFor(left, "it to have handed back what lay idle");
	await startOn(copy, "another");
	await untilLeftAlone(join(copy, "journal", "one", "1"));
	hold.ledger.settle(hold, outcome(700));
	expect(await stopped).toBe(true);
	expect(await charges()).toEqual([[700, "exact"]]);
});

/** Instances, and what was renamed to what: as somebody who tidies up, or a tool that unpacks a backup, may leave them. */
const RENAMED = [
	["a", "a", "a (old) %2F %zz é"],
	["b", "b", "%62"],
	["c", "c/1", "c/1.bak"],
	["d", "d/1", "d/20261127104500000000000"],
	["e", "e", "renamed"],
	["f", "f/1", "f/01"],
] as const;

test("a journal that was renamed is handed in as that of whoever wrote it", async () => {
	// One process has them all, and leaves a settled request and one that runs of each.
	child = await startLeaseChild({ db, dataDir: original, instanceId: RENAMED.map(([id]) => id).join(), ttlMs: 2_000 });
	for (const [id] of RENAMED) {
		await child.ask(`open done-${id} 100`, `opened done-${id}`);
		await child.ask(`settle done-${id} 60`, `settled done-${id}`);
		await child.ask(`open streaming-${id} 1000`, `opened streaming-${id}`);
		await child.ask(`progress streaming-${id} 200 320`, `progressed streaming-${id}`);
	}
	await child.end();
	const journals = join(original, "journal");
	for (const [, from, to] of RENAMED)
		expect(Bun.spawnSync(["mv", join(journals, from), join(journals, to)]).success).toBe(true);
	await startOn(original, "another");
	const handedIn = () => lines.filter(({ message }) => message === "a journal was handed in").length;
	await waitFor(() => handedIn() === RENAMED.length, "the journals to be handed in");
	const rows =
		await db.sql`select instance_id, epoch, count(*)::int as count from usage_event group by 1, 2 order by 1`;
	expect(rows.map((row) => ({ ...row }))).toEqual(RENAMED.map(([id]) => ({ instance_id: id, epoch: 1, count: 2 })));
	expect((await db.sql`select 1 from lease where state = 'open'`).length).toBe(0);
});

test("a journal of which neither lock nor folder says the epoch is named, and keeps no other one waiting", async () => {
	await serveThere(2_000);
	await child.end();
	const journals = join(original, "journal");
	expect(Bun.spawnSync(["cp", "-a", join(journals, "one"), join(journals, "a")]).success).toBe(true);
	expect(Bun.spawnSync(["mv", join(journals, "a", "1"), join(journals, "a", "lost+found")]).success).toBe(true);
	rmSync(join(journals, "a", "lost+found", "lock"));
	await startOn(original, "another");
	await waitFor(() => says("a journal was handed in"), "the journal to be handed in");
	expect(lines.filter(({ level }) => level === "warn")).toMatchObject([
		{ message: "a journal could not be handed in", folder: join(journals, "a", "lost+found") },
	]);
});

function writeLockOfAnotherStart(id: string): void {
	const lock = join(original, "journal", id, "1", "lock");
	const [, ...rest] = readFileSync(lock, "utf8").split(" ");
	writeFileSync(lock, ["another-start", ...rest].join(" "));
}

test("workers of one folder hand in what each left before a restart of the machine, and call nothing a copy", async () => {
	await serveThere(2_000, "two");
	await child.ask("open streaming-two 1000", "opened streaming-two");
	await child.ask("progress streaming-two 300 420", "progressed streaming-two");
	await child.end();
	for (const id of ["one", "two"]) writeLockOfAnotherStart(id);
	// Both live, so that each sees the other's instance run.
	await startOn(original, "one", 1_000);
	await startOn(original, "two", 1_000);
	await waitFor(async () => (await charges()).length === 3, "both journals to be handed in");
	expect(await charges()).toEqual([
		[60, "exact"],
		[200, "recovered"],
		[300, "recovered"],
	]);
	expect(lines.filter(({ level }) => level === "error")).toEqual([]);
});

// In short a restart of the machine is told of workers that each find their own, and of processes that crash.
test.if(LONG)(
	"what was left before a restart of the machine is no copy to a process whose forerunner still settles",
	async () => {
		await serveThere(2_000);
		await child.end();
		writeLockOfAnotherStart("one");
		const forerunner = await startLeaseChild({ db, dataDir: original, instanceId: "one", ttlMs: 2_500 });
		const opened = forerunner.ask("open running 1000", "opened running");
		const stopped = forerunner.ask("stop 3000", "stopped");
		await opened;
		await startOn(original, "one", 1_000);
		await stopped;
		await waitFor(async () => (await charges()).some(([charged]) => charged === 200), "the journal to be handed in");
		await forerunner.end();
		expect(lines.filter(({ level }) => level === "error")).toEqual([]);
	},
	30_000,
);

// A successor, or a worker that comes up after it.
test.if(LONG).each([
	["one", "two"],
	["one", "one"],
	["two", "two"],
])(
	"what was left before a restart of the machine is no copy to one that waits while %p and then %p start beside it and crash",
	async (first, second) => {
		await serveThere(2_000, "two");
		await child.ask("open running-two 1000", "opened running-two");
		await child.end();
		for (const id of ["one", "two"]) writeLockOfAnotherStart(id);
		await startOn(original, "one", 1_000);
		await waitFor(
			() => says("a journal was not made here: it is handed in once its instance is known to be gone"),
			"it to wait",
		);
		for (const name of [first, second])
			await (await startLeaseChild({ db, dataDir: original, instanceId: name, ttlMs: 1_000 })).end();
		await waitFor(async () => (await charges()).length === 3, "all journals to be handed in");
		expect(lines.filter(({ level }) => level === "error")).toEqual([]);
	},
);

test("what was left before a restart of the machine is handed in by processes that each crash before its lease is over", async () => {
	await serveThere(5_000);
	await child.end();
	writeLockOfAnotherStart("one");
	// A lease and a second are to be waited for, and each lives for less than half of that.
	const isOver = async () => (await charges()).length === 2;
	for (let life = 0; life < 8 && !(await isOver()); life++) {
		const one = await startLeaseChild({ db, dataDir: original, instanceId: "one", ttlMs: 5_000 });
		await waitFor(isOver, "it to be handed in", 2_000).catch(() => {});
		await one.end();
	}
	expect(await charges()).toEqual([
		[60, "exact"],
		[200, "recovered"],
	]);
}, 60_000);

test("where locks keep nobody out, as in some mounts, the journal of a process that runs is left alone", async () => {
	await serveThere(30_000);
	const flock = spyOn(libc(), "flock").mockReturnValue(0);
	try {
		await startOn(original, "another");
		const waits = "a journal was not made here: it is handed in once its instance is known to be gone";
		await waitFor(() => lines.filter(({ message }) => message === waits).length > 1, "it to be looked at again");
		await endThere();
		expect(lines.filter(({ level }) => level === "error")).toEqual([]);
	} finally {
		flock.mockRestore();
	}
}, 30_000);

test("a journal from before a restore takes nothing from the epoch that has its number now", async () => {
	await serveThere(30_000);
	await child.end();
	const restored = await createTestDatabase();
	await makeAccount(restored, "acc", 1_000, { key: null });
	// The same instance, with another DATA_DIR.
	child = await startLeaseChild({ db: restored, dataDir: copy, instanceId: "one", ttlMs: 30_000 });
	expect(child.heard("live 1")).resolves.toBe("live 1");
	await child.ask("open running 900", "opened running");
	const before = db;
	db = restored;
	await startOn(original, "another");
	await waitFor(() => says("a journal was handed in"), "the journal to be handed in");
	expect((await db.sql`select 1 from instance_now where id = 'one' and epoch = 1 and state = 'live'`).length).toBe(1);
	// What it could still spend is not available again.
	const [row] = await db.sql`select limit_nano_usd - drawn_nano_usd as available from budget where id = 'acc'`;
	expect(Number(row?.available)).toBeLessThanOrEqual(100);
	await child.ask("settle running 900", "settled running");
	await child.ask("stop", "stopped true");
	const rows = await db.sql`
		select instance_id, sum(charged_nano_usd)::int as charged, sum(charged_nano_usd + written_off_nano_usd)::int as cost
		from usage_event group by 1 order by 1`;
	expect(rows.map(({ instance_id, cost }) => [String(instance_id).replace(/~.*/, "~"), cost])).toEqual([
		["one", 900],
		["one~", 260],
	]);
	expect(rows[0]?.charged).toBe(900);
	expect(rows[1]?.charged).toBeLessThanOrEqual(100);
	expect((await reconcile(db.statements)).checks.filter(({ ok }) => !ok)).toEqual([]);
	await before.drop();
}, 30_000);

test("a copy hands the journal in when its instance has been silent for as long as its lease", async () => {
	await serveThere(2_000);
	await child.end();
	copyAll();
	const beganAt = performance.now();
	await startOn(copy, "another");
	await waitFor(() => says("a journal was handed in"), "the journal to be handed in");
	expect(performance.now() - beganAt).toBeGreaterThan(1_000);
	expect(await charges()).toEqual([
		[60, "exact"],
		[200, "recovered"],
	]);
	expect(readdirSync(join(copy, "journal", "one"))).toEqual([]);
});
