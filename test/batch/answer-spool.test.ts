import { expect, test } from "bun:test";
import {
	appendFileSync,
	existsSync,
	readdirSync,
	readFileSync,
	readlinkSync,
	rmSync,
	statSync,
	writeFileSync,
} from "node:fs";
import { join } from "node:path";
import type { Log } from "../../src/base/log.ts";
import { silentLog } from "../../src/base/log.ts";
import { createAnswerSpool } from "../../src/batch/answer-spool.ts";
import { linesBefore } from "../../src/batch/lines-before.ts";
import type { Outcomes } from "../../src/batch/outcomes.ts";
import type { Claim, SpooledLine } from "../../src/batch/run-spool.ts";
import { temporaryFolder } from "../support/at-end.ts";

const SECRET = "x".repeat(32);
const BATCH = "batch_1";

function answered(line: number, text = `answer ${line}`): SpooledLine {
	return { line, id: crypto.randomUUID(), answer: { file: "output", text, usage: undefined } };
}

function spoolIn(folder: string, log: Log = silentLog, secret = SECRET) {
	const spool = createAnswerSpool({ log }, { folder, secret });
	const left = (run: number) => Array.fromAsync(spool.left(BATCH, run));
	const segments = () => readdirSync(join(folder, BATCH)).map((name) => join(folder, BATCH, name));
	return { ...spool, left, segments };
}

test("what runs put by is there for the next one, in its order, until it is sealed", async () => {
	const spool = spoolIn(join(temporaryFolder(), "batches"));
	const first = spool.open(BATCH, 1);
	const second = spool.open(BATCH, 2);
	const lines = [
		answered(1),
		{ line: 2, id: crypto.randomUUID(), answer: undefined },
		answered(3, "é".repeat(200_000)),
	];
	for (const line of lines) first.add(line as SpooledLine);
	const sealed = first.mark();
	const later = [answered(4), answered(5)] as const;
	first.add(later[0]);
	second.add(later[1]);
	expect(await spool.left(3)).toEqual([...lines, ...later] as SpooledLine[]);
	// A run sees what others left, and nothing of its own.
	expect(await spool.left(2)).toEqual([...lines, later[0]] as SpooledLine[]);
	sealed();
	expect(await spool.left(3)).toEqual([...later]);
	spool.taken(BATCH, 2);
	expect(await spool.left(3)).toEqual([later[1]]);
	expect(spool.batches()).toEqual([BATCH]);
	spool.forget(BATCH);
	expect(spool.batches()).toEqual([]);
	expect(await spool.left(3)).toEqual([]);
});

test("a record that a kill cut off hides nothing before it; nobody else can read any, nor take one for another", async () => {
	const folder = join(temporaryFolder(), "batches");
	const spool = spoolIn(folder);
	const run = spool.open(BATCH, 1);
	const lines = [answered(1, "a secret answer"), answered(2)] as const;
	for (const line of lines) run.add(line);
	run.close();
	const [segment = ""] = spool.segments().filter((path) => path.endsWith("1-0"));
	expect(statSync(segment).mode & 0o777).toBe(0o600);
	expect(statSync(folder).mode & 0o777).toBe(0o700);
	const whole = readFileSync(segment);
	expect(whole.includes("secret answer")).toBe(false);
	expect(await spoolIn(folder, silentLog, "y".repeat(32)).left(2)).toEqual([]);
	for (const torn of [1, 4, 5, 100]) {
		appendFileSync(segment, whole.subarray(0, torn));
		expect(await spool.left(2)).toEqual([...lines]);
		writeFileSync(segment, whole);
	}
	const firstBytes = 4 + whole.readUInt32LE(0);
	writeFileSync(segment, whole.subarray(firstBytes));
	expect(await spool.left(2)).toEqual([]);
	writeFileSync(segment, whole.subarray(0, -1));
	expect(await spool.left(2)).toEqual([lines[0]]);
});

test.skipIf(!existsSync("/proc/self/fd"))(
	"a run that fails while it reads what others left keeps no file open",
	async () => {
		const folder = join(temporaryFolder(), "batches");
		const spool = createAnswerSpool({ log: silentLog }, { folder, secret: SECRET });
		const run = spool.open(BATCH, 1);
		const lines = [answered(1), answered(2), answered(3)];
		for (const line of lines) run.add(line);
		run.close();
		const openHere = () =>
			readdirSync("/proc/self/fd").filter((fd) => {
				try {
					return readlinkSync(`/proc/self/fd/${fd}`).startsWith(folder);
				} catch {
					return false;
				}
			}).length;
		const rows = lines.map(({ line, id }) => ({ line, id, state: "claimed" }));
		const books = { lines: async (_: string, after: number) => (after === 0 ? rows : []) } as never;
		// As much is there as is sealed at once, and its account has no room for it.
		const full = new Error("the files of this account take as much space as they may");
		const outcomes = { add() {}, bytes: () => Number.POSITIVE_INFINITY, flush: () => Promise.reject(full) };
		const nothing = { parts: 0, empty: new Set<number>() };
		for (let runs = 2; runs < 20; runs += 1) {
			const failing = linesBefore(
				{ books, spool, outcomes: outcomes as unknown as Outcomes },
				{ batchId: BATCH, run: runs },
				{ output: nothing, error: nothing },
				new AbortController().signal,
			);
			await expect(failing).rejects.toBe(full);
		}
		expect(openHere()).toBe(0);
		expect(await Array.fromAsync(spool.left(BATCH, 20))).toEqual(lines);
	},
);

test("what was claimed and never sent is told once nothing can be missing: its process is gone, all is whole, no restart", async () => {
	const folder = join(temporaryFolder(), "batches");
	const spool = spoolIn(folder);
	const run = spool.open(BATCH, 1);
	const claims = Array.from({ length: 5 }, (_, at) => ({ line: at + 1, id: crypto.randomUUID() }));
	const [sent, answeredOne, refused, late, unsent] = claims as [Claim, Claim, Claim, Claim, Claim];
	run.claims(claims);
	for (const { id } of [sent, answeredOne]) expect(run.sends(id)).toBe(true);
	const answer = { file: "output", text: "x", usage: undefined } as const;
	run.add({ ...answeredOne, answer });
	run.add({ ...refused, answer: undefined });
	run.mark()();
	// From here on in a segment of its own, which has the claims that are not sent.
	expect(run.sends(late.id)).toBe(true);
	expect(await spool.left(2)).toEqual([]);
	run.close();
	const told = { ...unsent, answer: undefined };
	expect(await spool.left(2)).toEqual([told]);

	const [segment = ""] = spool.segments().filter((path) => path.endsWith("1-1"));
	const whole = readFileSync(segment);
	appendFileSync(segment, whole.subarray(0, 7));
	expect(await spool.left(2)).toEqual([]);
	writeFileSync(segment, whole);
	expect(await spool.left(2)).toEqual([told]);
	expect(
		await Array.fromAsync(
			createAnswerSpool({ log: silentLog }, { folder, secret: SECRET, boot: "another" }).left(BATCH, 2),
		),
	).toEqual([]);
	spool.taken(BATCH, 2);
	expect(spool.segments()).toEqual([]);
});

test("a claim never stays behind its sending: what is removed is removed from the oldest on", async () => {
	const spool = spoolIn(join(temporaryFolder(), "batches"));
	const run = spool.open(BATCH, 1);
	const claim = { line: 1, id: crypto.randomUUID() };
	run.claims([claim]);
	// Its answers could not be sealed.
	run.mark();
	expect(run.sends(claim.id)).toBe(true);
	run.mark()();
	run.close();
	expect(await spool.left(2)).toEqual([]);
	expect(spool.segments().filter((path) => /1-\d$/.test(path))).toHaveLength(2);
});

test("what could not be noted is not sent, if a crash would take it for unsent; else it is", () => {
	const parent = temporaryFolder();
	const folder = join(parent, "batches");
	const spool = spoolIn(folder);
	const run = spool.open(BATCH, 1);
	const noted = { line: 1, id: crypto.randomUUID() };
	const unnoted = { line: 2, id: crypto.randomUUID() };
	run.claims([noted]);
	run.mark();
	// In the place of the next segments.
	for (const number of [2, 3, 4]) writeFileSync(join(folder, BATCH, `1-${number}`), "");
	run.mark();
	expect(run.sends(noted.id)).toBe(false);
	run.claims([unnoted]);
	expect(run.sends(unnoted.id)).toBe(true);
	expect(run.sends(noted.id)).toBe(true);
});

test("a disk that takes nothing is told of once, and costs no more than what lay there", async () => {
	const parent = temporaryFolder();
	const warned: string[] = [];
	const spool = spoolIn(join(parent, "batches"), { ...silentLog, warn: (message) => void warned.push(message) });
	writeFileSync(join(parent, "batches"), "no folder");
	const run = spool.open(BATCH, 1);
	for (let line = 1; line <= 3; line += 1) run.add(answered(line));
	expect(warned).toEqual(["answers of a batch cannot be put by"]);
	rmSync(join(parent, "batches"));
	const line = answered(4);
	run.add(line);
	expect(await spool.left(2)).toEqual([line]);
});
