import { dlopen } from "bun:ffi";
import { expect, test } from "bun:test";
import {
	closeSync,
	existsSync,
	mkdirSync,
	openSync,
	readdirSync,
	readFileSync,
	readlinkSync,
	rmSync,
	truncateSync,
	writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { systemClock } from "../../src/base/clock.ts";
import { newUuid } from "../../src/base/id.ts";
import { DiskFull, type JournalDisk, type JournalFile, openJournalDisk } from "../../src/ledger/journal-disk.ts";
import { encodeRecord, RecordKind } from "../../src/ledger/journal-record.ts";
import { temporaryFolder } from "../support/at-end.ts";
import { createManualClock } from "../support/upstream-clock.ts";
import { admittedEvent, decodeRecords, openTestJournal, replayedJournal, settledEvent } from "./fixture.ts";

const root = temporaryFolder();

const folder = () => join(root, newUuid());
const admit = (id: string) => JSON.stringify({ ...admittedEvent("a", "k", id), reserved: 100 });
const settle = (id: string, charged = 5) => JSON.stringify(settledEvent("a", "k", charged, { id }));
const progress = (id: string, delivered: number, bound: number) =>
	JSON.stringify({ id, delivered, bound, promptTokens: 1, completionTokens: 1 });

test.each(["mapped", "written"])("acknowledged records of a journal file that is %s survive kill -9", async (way) => {
	const path = folder();
	const child = Bun.spawn([process.execPath, join(import.meta.dir, "journal-child.ts"), path, way], {
		stdout: "pipe",
		stderr: "inherit",
	});
	let output = "";
	const decoder = new TextDecoder();
	for await (const chunk of child.stdout) {
		output += decoder.decode(chunk, { stream: true });
		if (output.length > 400_000 && !child.killed) child.kill("SIGKILL");
	}
	await child.exited;
	const lines = output.split("\n").slice(0, -1);
	expect(lines.length).toBeGreaterThan(5_000);
	const replay = replayedJournal(openJournalDisk(path, { create: false }), 0);
	const settled = new Set(replay.settled.map(({ id }) => id));
	const known = new Set([...settled, ...replay.recovered.map(({ id }) => id)]);
	const missing = lines.filter((line) => {
		const [kind, id] = line.split(" ") as [string, string];
		return kind === "settle" ? !settled.has(id) : !known.has(id);
	});
	expect(missing).toEqual([]);
});

/** Writes three records: the settlement of one request, and admission and progress of a second, open one. */
function writeThree(path: string): { name: string; bytes: Uint8Array; ends: number[] } {
	const disk = openJournalDisk(path, { create: true });
	const { journal } = openTestJournal(disk, systemClock, {});
	const ends: number[] = [];
	const name = "00000001.log";
	const size = () => ends.push(journal.size().bytes);
	journal.admit(admit("1"));
	size();
	journal.settle(settle("1"));
	size();
	journal.admit(admit("2"));
	size();
	journal.close();
	return { name, bytes: readFileSync(join(path, name)), ends };
}

test("a replay of a truncated journal ends at its last complete record", () => {
	const path = folder();
	const { name, bytes, ends } = writeThree(path);
	expect(bytes.length).toBe(ends.at(-1) as number);
	for (let length = bytes.length; length >= 0; length--) {
		// Damages the end of the file: cuts it off, or fills it with zeros like a mapped file that was not closed.
		if (length % 2 === 0) truncateSync(join(path, name), length);
		else
			writeFileSync(
				join(path, name),
				bytes.map((byte, at) => (at < length ? byte : 0)),
			);
		const whole = ends.filter((end) => end <= length).length;
		const replay = replayedJournal(openJournalDisk(path, { create: false }), 0);
		expect([replay.settled.length, replay.recovered.length]).toEqual(
			[
				[0, 0],
				[0, 1],
				[1, 0],
				[1, 1],
			][whole] as number[],
		);
		const damaged = length - (whole === 0 ? 0 : (ends[whole - 1] as number));
		const zeros = bytes.subarray(0, length).reduce((count, byte) => (byte === 0 ? count + 1 : 0), 0);
		expect(replay.damagedBytes).toBe(Math.max(0, damaged - zeros));
	}
});

test("a replay of a journal ends at any flipped bit and keeps all records before it", () => {
	const path = folder();
	const { name, bytes, ends } = writeThree(path);
	for (let bit = 0; bit < bytes.length * 8; bit++) {
		const damaged = Uint8Array.from(bytes);
		damaged[bit >> 3] = (damaged[bit >> 3] as number) ^ (1 << (bit & 7));
		const { records, intactBytes } = decodeRecords(damaged);
		const before = ends.filter((end) => end <= bit >> 3).length;
		expect(records.length).toBe(before);
		expect(intactBytes).toBe(before === 0 ? 0 : (ends[before - 1] as number));
	}
	writeFileSync(join(path, name), new Uint8Array(bytes.length));
	expect(replayedJournal(openJournalDisk(path, { create: false }), 0).settled).toEqual([]);
});

test("a replay reads a segment longer than the limit only up to the limit", () => {
	const path = folder();
	const { name, bytes } = writeThree(path);
	const whole = replayedJournal(openJournalDisk(path, { create: false }), 0);
	expect([whole.settled.length, whole.recovered.length]).toEqual([1, 1]);
	for (const length of [bytes.length + 1, 64 * 1024 ** 2, 64 * 1024 ** 3]) {
		truncateSync(join(path, name), length);
		const disk = openJournalDisk(path, { create: false });
		expect(replayedJournal(disk, 0)).toEqual(whole);
		expect(disk.read(name).length).toBeLessThan(32 * 1024 ** 2);
	}
});

test("the journal refuses a record that is longer than its buffer", () => {
	const target = Buffer.alloc(1024);
	expect(() => encodeRecord(target, RecordKind.admit, "é".repeat(400))).toThrow("fits the buffer");
});

test("the journal deletes the oldest segment once Postgres has the segment's requests", () => {
	const path = folder();
	const disk = openJournalDisk(path, { create: true });
	const { journal } = openTestJournal(disk, systemClock, { segmentBytesMax: 1 });
	const first = journal.admit(admit("1"));
	const second = journal.admit(admit("2"));
	const third = journal.admit(admit("3"));
	expect([first, second, third]).toEqual([1, 2, 3]);
	const whole = journal.size();
	expect(whole.segments).toBe(3);
	expect(whole.bytes).toBe(
		disk.list().reduce((sum, name) => sum + decodeRecords(readFileSync(join(path, name))).intactBytes, 0),
	);
	// Settles the first request in the third segment; no open request needs the second segment.
	journal.settle(settle("1"));
	journal.acknowledge(second);
	expect(disk.list()).toEqual(["00000001.log", "00000002.log", "00000003.log"]);
	journal.acknowledge(first);
	expect(disk.list()).toEqual(["00000003.log"]);
	expect(journal.size().segments).toBe(1);
	journal.acknowledge(third);
	expect(disk.list()).toEqual(["00000003.log"]);
	journal.destroy();
	expect(disk.list()).toEqual([]);
});

test("the journal logs a segment or folder that it cannot delete", () => {
	const parent = folder();
	const path = join(parent, "1");
	const { journal, lines } = openTestJournal(openJournalDisk(path, { create: true }), systemClock, {
		segmentBytesMax: 1,
	});
	const first = journal.admit(admit("1"));
	journal.admit(admit("2"));
	// Makes the next segment impossible to create, as if the disk were read-only.
	rmSync(join(path, "00000001.log"));
	mkdirSync(join(path, "00000001.log"));
	journal.acknowledge(first);
	rmSync(parent, { recursive: true });
	writeFileSync(parent, "");
	journal.destroy();
	expect(lines.map((line) => JSON.parse(line).message)).toEqual(
		Array(2).fill("a journal segment that is no longer needed could not be removed"),
	);
});

test.skipIf(!existsSync("/proc/self/fd"))("the journal closes a file that it cannot truncate", () => {
	const path = folder();
	const { journal, lines } = openTestJournal(openJournalDisk(path, { create: true }), systemClock, {
		segmentBytesMax: 1,
	});
	const openAt = (name: string) =>
		readdirSync("/proc/self/fd").filter((fd) => {
			try {
				return readlinkSync(`/proc/self/fd/${fd}`).startsWith(join(path, name));
			} catch {
				return false;
			}
		});
	const { symbols: libc } = dlopen("libc.so.6", { dup2: { args: ["i32", "i32"], returns: "i32" } });
	/** Makes truncation of the segment fail, as if the disk had become read-only. */
	const makeUncut = (name: string) => {
		const [fd] = openAt(name);
		const readOnly = openSync(join(path, name), "r");
		expect(libc.dup2(readOnly, Number(fd))).toBe(Number(fd));
		closeSync(readOnly);
	};
	const first = journal.admit(admit("1"));
	journal.admit(admit("2"));
	makeUncut("00000001.log");
	journal.acknowledge(first);
	expect(openAt("00000001.log")).toEqual([]);
	makeUncut("00000002.log");
	journal.close();
	expect(openAt("00000002.log")).toEqual([]);
	expect(lines).toEqual([]);
	expect(replayedJournal(openJournalDisk(path, { create: false }), 0).recovered.map(({ id }) => id)).toEqual(["2"]);
});

test("the journal keeps a settlement as long as its request's admission record", () => {
	const path = folder();
	const disk = openJournalDisk(path, { create: true });
	const { journal } = openTestJournal(disk, systemClock, { segmentBytesMax: 1 });
	journal.admit(admit("long"));
	const second = journal.admit(admit("short"));
	journal.progress(progress("long", 10, 20));
	journal.settle(settle("long", 77));
	journal.admit(admit("next"));
	journal.acknowledge(second);
	const replay = replayedJournal(disk, 0);
	expect(replay.settled.map((one) => one.charged as number)).toEqual([77]);
	journal.close();
});

/** A disk that the test can fill, and whose syncs the test completes. */
function scriptedDisk() {
	const files = new Map<string, number>();
	const syncs: { name: string; bytes: number; resolve: () => void; reject: (error: Error) => void }[] = [];
	const state = { room: Number.POSITIVE_INFINITY, reserve: 1_000, closed: [] as string[] };
	const disk: JournalDisk = {
		list: () => [...files.keys()],
		read: () => new Uint8Array(),
		create(name): JournalFile {
			files.set(name, 0);
			return {
				append(_bytes, length) {
					if (length > state.room) throw new DiskFull("full");
					state.room -= length;
					files.set(name, (files.get(name) ?? 0) + length);
				},
				sync: () =>
					new Promise((resolve, reject) => syncs.push({ name, bytes: files.get(name) ?? 0, resolve, reject })),
				close: () => state.closed.push(name),
			};
		},
		remove: (name) => files.delete(name),
		isWhole: () => true,
		destroy: () => files.clear(),
		freeReserve() {
			if (state.reserve === 0) return false;
			state.room += state.reserve;
			state.reserve = 0;
			return true;
		},
		keepReserve() {
			if (state.room < 1_000) return false;
			state.room -= 1_000;
			state.reserve = 1_000;
			return true;
		},
	};
	return { disk, state, syncs, files };
}

test("on a full disk the journal refuses new requests, settles others and recovers", () => {
	const { disk, state } = scriptedDisk();
	const clock = createManualClock();
	const { journal } = openTestJournal(disk, clock, {});
	journal.admit(admit("1"));
	state.room = 10;
	expect(() => journal.admit(admit("2"))).toThrow(DiskFull);
	expect(journal.problem()).toBe("the journal's disk is full");
	journal.progress(progress("1", 1, 2));
	journal.settle(settle("1"));
	clock.advance(2_000);
	expect(journal.problem()).toBe("the journal's disk is full");
	expect(() => journal.admit(admit("3"))).toThrow(DiskFull);
	state.room = 5_000;
	expect(journal.problem()).toBe("the journal's disk is full");
	clock.advance(1_000);
	expect(journal.problem()).toBe(undefined);
	expect(journal.admit(admit("4"))).toBe(1);
});

test("the journal keeps eight settled segments for a while, and none on a full disk", () => {
	const { disk, state, files } = scriptedDisk();
	const clock = createManualClock();
	const { journal } = openTestJournal(disk, clock, { segmentBytesMax: 300, keepMs: 1_000 });
	const fill = (segments: number) => {
		for (const until = files.size + segments; files.size < until; ) {
			const segment = journal.admit(admit("r"));
			journal.settle(settle("r"));
			journal.acknowledge(segment);
		}
	};
	fill(7);
	expect(journal.size().segments).toBe(1);
	for (let more = 0; more < 20; more++) journal.acknowledge(journal.admit(admit("r")));
	expect(files.size).toBe(9);
	clock.advance(1_000);
	for (let more = 0; more < 3; more++) journal.acknowledge(journal.admit(admit("r")));
	expect(files.size).toBeLessThan(4);
	fill(3);
	state.room = 10;
	expect(() => journal.admit(admit("no room"))).toThrow(DiskFull);
	expect(files.size).toBe(1);
});

test("the journal lists settlements that Postgres should have, even of kept segments", () => {
	const disk = openJournalDisk(folder(), { create: true });
	const { journal } = openTestJournal(disk, createManualClock(), { segmentBytesMax: 500, keepMs: 1_000 });
	const ids = Array.from({ length: 6 }, (_, number) => `r${number}`);
	for (const id of ids) {
		const segment = journal.admit(admit(id));
		journal.settle(settle(id));
		if (id !== "r5") journal.acknowledge(segment);
	}
	expect(journal.size().segments).toBeLessThan(disk.list().length);
	const read = () => [...journal.settlements(() => new Set(["r5"]))].map(({ id }) => id);
	expect(read()).toEqual(ids.slice(0, -1));
	// A segment is not deleted while it is being read.
	const reading = journal.settlements(() => new Set());
	reading.next();
	for (let more = 0; more < 30; more++) journal.acknowledge(journal.admit(admit("later")));
	expect([...reading].map(({ id }) => id)).toEqual(ids.slice(1));
	journal.close();
});

test("without its folder the journal refuses new requests, settles others and recovers", () => {
	const path = folder();
	const disk = openJournalDisk(path, { create: true });
	const clock = createManualClock();
	const { journal } = openTestJournal(disk, clock, { segmentBytesMax: 500 });
	const segments: number[] = [];
	while ((segments.at(-1) ?? 1) < 2) segments.push(journal.admit(admit(String(segments.length))));
	rmSync(path, { recursive: true });
	// The open segment still accepts records although the next one cannot be created.
	expect(() => {
		for (let at = 0; at < 10; at++) segments.push(journal.admit(admit(String(segments.length))));
	}).toThrow("ENOENT");
	expect(journal.problem()).toBe("the journal cannot be written");
	expect(() => journal.admit(admit("refused"))).toThrow("the journal cannot be written");
	for (const [at, segment] of segments.entries()) {
		journal.settle(settle(String(at)));
		journal.acknowledge(segment);
	}
	clock.advance(1_000);
	expect(journal.problem()).toBe("the journal cannot be written");
	openJournalDisk(path, { create: true });
	clock.advance(1_000);
	expect(journal.problem()).toBe(undefined);
	expect(journal.admit(admit("taken"))).toBe((segments.at(-1) ?? 0) + 1);
	journal.close();
	expect(replayedJournal(openJournalDisk(path, { create: false }), 0).recovered.map(({ id }) => id)).toEqual(["taken"]);
});

test("the journal's durable() waits for a sync that begins after the append", async () => {
	const { disk, syncs } = scriptedDisk();
	const { journal } = openTestJournal(disk, systemClock, { syncs: true });
	const done: string[] = [];
	journal.admit(admit("1"));
	void journal.durable().then(() => done.push("1"));
	journal.admit(admit("2"));
	void journal.durable().then(() => done.push("2"));
	journal.admit(admit("3"));
	void journal.durable().then(() => done.push("3"));
	expect(syncs.length).toBe(1);
	const oneRecord = syncs[0]?.bytes;
	syncs[0]?.resolve();
	await Bun.sleep(0);
	expect(done).toEqual(["1"]);
	expect(syncs.length).toBe(2);
	expect(syncs[1]?.bytes).toBe(3 * (oneRecord as number));
	syncs[1]?.resolve();
	await Bun.sleep(0);
	expect(done).toEqual(["1", "2", "3"]);
});

test("the journal's durable() covers every segment written since the last sync", async () => {
	const { disk, syncs } = scriptedDisk();
	const { journal } = openTestJournal(disk, systemClock, { syncs: true, segmentBytesMax: 1 });
	for (const id of ["1", "2", "3", "4"]) journal.admit(admit(id));
	void journal.durable();
	expect(syncs.map(({ name }) => name)).toEqual(["00000001.log", "00000002.log", "00000003.log", "00000004.log"]);
});

test("the journal closes a segment deleted during a sync only when the sync has ended", async () => {
	const { disk, state, syncs } = scriptedDisk();
	const { journal, failures } = openTestJournal(disk, systemClock, { syncs: true, segmentBytesMax: 1 });
	const first = journal.admit(admit("1"));
	journal.admit(admit("2"));
	const durable = journal.durable();
	journal.acknowledge(first);
	expect(state.closed).toEqual([]);
	for (const sync of syncs) sync.resolve();
	await durable;
	expect(state.closed).toEqual(["00000001.log"]);
	expect(failures).toEqual([]);
});

test("the journal deletes a segment only after the records copied from it are synced", async () => {
	const { disk, syncs, files } = scriptedDisk();
	const { journal } = openTestJournal(disk, systemClock, { syncs: true, segmentBytesMax: 1 });
	const first = journal.admit(admit("long"));
	journal.admit(admit("next"));
	journal.carry(admit("long"), progress("long", 10, 20));
	journal.acknowledge(first);
	const oldest = [...files.keys()][0] as string;
	await Promise.resolve();
	expect(files.has(oldest)).toBe(true);
	expect(syncs.length).toBeGreaterThan(0);
	for (const sync of syncs) sync.resolve();
	for (let turn = 0; turn < 5; turn++) await Promise.resolve();
	expect(files.has(oldest)).toBe(false);
	journal.close();
});

test("a record that arrives during a sync of the journal is durable after the next one", async () => {
	const { disk, state, syncs } = scriptedDisk();
	const { journal } = openTestJournal(disk, systemClock, { syncs: true, segmentBytesMax: 1 });
	const carried = [journal.admit(admit("a")), journal.admit(admit("b"))];
	journal.admit(admit("c"));
	const carry = (id: string, from: number) => {
		journal.carry(admit(id), undefined);
		journal.acknowledge(from);
	};
	// The first sync covers the first copied record. The second record arrives during it, so it needs another sync.
	carry("a", carried[0] as number);
	const ofFirst = syncs.splice(0);
	expect(ofFirst.length).toBeGreaterThan(0);
	carry("b", carried[1] as number);
	let isDurable = false;
	void journal.durable().then(() => {
		isDurable = true;
	});
	for (const sync of ofFirst) sync.resolve();
	await Bun.sleep(0);
	expect(syncs.length).toBe(1);
	expect(isDurable).toBe(false);
	expect(state.closed).toEqual([]);
	for (const sync of syncs) sync.resolve();
	await Bun.sleep(0);
	expect(isDurable).toBe(true);
	expect(state.closed).toEqual(["00000001.log", "00000002.log"]);
	journal.close();
});

test("a replay uses a request's progress from before its copy to a new segment", () => {
	const disk = openJournalDisk(folder(), { create: true });
	const { journal } = openTestJournal(disk, systemClock, {});
	journal.admit(admit("carried"));
	journal.progress(progress("carried", 10, 20));
	journal.carry(admit("carried"), undefined);
	journal.admit(admit("beyond"));
	journal.progress(progress("beyond", 150, 200));
	journal.close();
	expect(replayedJournal(disk, 0).recovered.map((one) => [one.id, one.charged as number])).toEqual([
		["carried", 10],
		["beyond", 100],
	]);
});

test.each(["close", "destroy"] as const)(
	"the journal's %s() leaves open files to the running sync and the next one",
	async (end) => {
		const disk = openJournalDisk(folder(), { create: true });
		const { journal, failures } = openTestJournal(disk, systemClock, { syncs: true });
		journal.admit(admit("1"));
		const first = journal.durable();
		journal.settle(settle("1"));
		const behind = journal.durable();
		journal[end]();
		await Promise.all([first, behind]);
		expect(failures).toEqual([]);
	},
);

test("a closed journal closes its files once, after its last sync", async () => {
	const { disk, state, syncs } = scriptedDisk();
	const { journal } = openTestJournal(disk, systemClock, { syncs: true });
	journal.admit(admit("1"));
	void journal.durable();
	journal.settle(settle("1"));
	void journal.durable();
	journal.close();
	for (const closed of [[], [], ["00000001.log"]]) {
		expect(state.closed).toEqual(closed);
		syncs.shift()?.resolve();
		await Bun.sleep(0);
	}
});

test("a failed sync of the journal is reported and never repeated", async () => {
	const { disk, syncs } = scriptedDisk();
	const { journal, failures } = openTestJournal(disk, systemClock, { syncs: true });
	journal.admit(admit("1"));
	const first = journal.durable();
	syncs[0]?.reject(new Error("EIO"));
	await expect(first).rejects.toThrow("EIO");
	await expect(journal.durable()).rejects.toThrow("EIO");
	expect(syncs.length).toBe(1);
	expect(failures.length).toBe(1);
});
