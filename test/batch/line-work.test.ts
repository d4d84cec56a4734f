import { expect, test } from "bun:test";
import { type Clock, systemClock } from "../../src/base/clock.ts";
import { Fault } from "../../src/base/fault.ts";
import { silentLog } from "../../src/base/log.ts";
import type { BatchBooks, ClaimedLine } from "../../src/batch/batch-books.ts";
import type { OpenLine } from "../../src/batch/batch-line.ts";
import type { BatchRecord } from "../../src/batch/batch-record.ts";
import { createLineWork } from "../../src/batch/line-work.ts";
import type { OutcomeRecord, OutcomeWriter } from "../../src/batch/outcomes.ts";
import type { KeyDigest } from "../../src/keys/secret.ts";
import { createManualClock } from "../support/upstream-clock.ts";
import { chatLine } from "./batch-service.ts";

function lineWork(world: {
	lines: number;
	claim(lines: readonly ClaimedLine[]): Promise<ReadonlySet<number>>;
	answer(requestUuid: string): Response | Promise<Response>;
	add?(outcome: OutcomeRecord): void;
	room?(): Promise<number>;
	clock?: Clock;
	read?: AsyncGenerator<OpenLine, void>;
}) {
	const books = {
		claim: (_id: string, _run: number, lines: readonly ClaimedLine[]) => world.claim(lines),
	} as Partial<BatchBooks> as BatchBooks;
	const outcomes = {
		add: world.add ?? (() => {}),
		bytes: () => 0,
		pause: () => null,
	} as Partial<OutcomeWriter> as OutcomeWriter;
	const batch = { id: "batch_1", run: 1, endpoint: "/v1/chat/completions" } as BatchRecord;
	return createLineWork(
		{
			...{ books, outcomes, refused: new Set<string>(), clock: world.clock ?? systemClock, log: silentLog },
			carrier: {
				answer: async ({ requestUuid }) => world.answer(requestUuid),
				usageOf: () => undefined,
				room: world.room ?? (async () => world.lines),
			},
		},
		{ ...batch, model: "test-model", keyDigest: "" as KeyDigest },
		world.read ?? linesOf(world.lines),
	);
}

async function* linesOf(lines: number): AsyncGenerator<OpenLine, void> {
	for (let line = 1; line <= lines; line += 1) yield { line, text: chatLine(`n${line}`) };
}

/**
 * Runs one line with these results of claims and these answer statuses. Returns the line's outcomes and sent requests.
 */
async function runLine(
	claim: (attempt: number, carryOut: () => ReadonlySet<number>) => Promise<ReadonlySet<number>>,
	statuses: readonly number[],
): Promise<{ outcomes: OutcomeRecord[]; sent: string[] }> {
	let row: string | undefined;
	let attempt = 0;
	const outcomes: OutcomeRecord[] = [];
	const sent: string[] = [];
	const answers = [...statuses];
	const work = lineWork({
		lines: 1,
		claim(lines) {
			attempt += 1;
			return claim(attempt, () => {
				const [one] = lines as [ClaimedLine];
				if (row !== undefined && row !== one.id && row !== one.was) return new Set();
				row = one.id;
				return new Set([one.line]);
			});
		},
		answer(requestUuid) {
			expect(row).toBe(requestUuid);
			sent.push(requestUuid);
			const status = answers.shift() ?? 200;
			return Response.json(status === 200 ? {} : { error: { code: "overloaded", message: "busy" } }, { status });
		},
		add: (outcome) => void outcomes.push(outcome),
	});
	expect(await work.run()).toBeUndefined();
	return { outcomes, sent };
}

const away = () => Promise.reject(new Error("scripted: the database is away"));

for (const isCarriedOut of [true, false]) {
	test(`a batch claims a line again after a lost reply (claim made: ${isCarriedOut})`, async () => {
		const lost = async (wanted: number, attempt: number, carryOut: () => ReadonlySet<number>) => {
			if (attempt !== wanted) return carryOut();
			if (isCarriedOut) carryOut();
			return away();
		};
		const first = await runLine((attempt, carryOut) => lost(1, attempt, carryOut), []);
		expect(first).toMatchObject({ outcomes: [{ line: 1, file: "output" }], sent: { length: 1 } });
		// The first request is refused, and the reply to the second request's claim is lost.
		const second = await runLine((attempt, carryOut) => lost(2, attempt, carryOut), [503]);
		expect(second).toMatchObject({ outcomes: [{ line: 1, file: "output" }], sent: { length: 2 } });
	}, 20_000);
}

test("a batch run lets other tasks run between two lines", async () => {
	const LINES = 20;
	let turn = 0;
	let isOver = false;
	const count = () => {
		turn += 1;
		if (!isOver) setImmediate(count);
	};
	setImmediate(count);
	const sentIn: number[] = [];
	const work = lineWork({
		lines: LINES,
		claim: async (lines) => new Set(lines.map(({ line }) => line)),
		answer: () => {
			sentIn.push(turn);
			return Response.json({});
		},
	});
	expect(await work.run()).toBeUndefined();
	isOver = true;
	expect(sentIn).toHaveLength(LINES);
	expect(new Set(sentIn).size).toBe(LINES);
});

const NO_SERVER = new Fault("service_unavailable", "No server.");
for (const [what, error] of [
	["that has no server", NO_SERVER],
	["whose capacity is unknown", new Error("scripted: a bug")],
] as const) {
	test(`a batch run retries a model ${what} at intervals, not in a loop`, async () => {
		const clock = createManualClock();
		let asked = 0;
		let gone = true;
		const work = lineWork({
			...{ lines: 1, clock },
			claim: async (lines) => new Set(lines.map(({ line }) => line)),
			answer: () => Response.json({}),
			async room() {
				asked += 1;
				if (gone && asked < 100) throw error;
				return 1;
			},
		});
		const run = work.run();
		await Bun.sleep(0);
		expect(asked).toBe(1);
		const told = error === NO_SERVER ? { code: "service_unavailable", message: "No server." } : null;
		expect(work.pause()).toEqual(told && expect.objectContaining(told));
		clock.advance(300);
		await Bun.sleep(0);
		expect(asked).toBe(2);
		gone = false;
		clock.advance(15_000);
		expect(await run).toBeUndefined();
		expect(work.pause()).toBeNull();
	});
}

test("a batch whose input becomes unreadable waits for answers to lines already sent", async () => {
	const answer = Promise.withResolvers<Response>();
	const broken = Promise.withResolvers<never>();
	const reached = Promise.withResolvers<void>();
	const outcomes: OutcomeRecord[] = [];
	const claimed: number[] = [];
	const work = lineWork({
		lines: 1,
		async claim(lines) {
			claimed.push(...lines.map(({ line }) => line));
			return new Set(lines.map(({ line }) => line));
		},
		answer: () => answer.promise,
		add: (outcome) => void outcomes.push(outcome),
		room: async () => (claimed.length === 0 ? 1 : 2),
		read: (async function* () {
			yield* linesOf(2);
			reached.resolve();
			await broken.promise;
		})(),
	});
	let isOver = false;
	const run = work.run().finally(() => {
		isOver = true;
	});
	run.catch(() => {});
	await reached.promise;
	// A cancelled batch also reads the rest of its input, to list the lines without an outcome.
	work.stop("cancelled");
	broken.reject(new Error("scripted: the store is away"));
	await Bun.sleep(0);
	expect(isOver).toBe(false);
	answer.resolve(Response.json({}));
	expect(await run).toBe("unreadable");
	expect(outcomes).toMatchObject([{ line: 1, file: "output" }]);
	// Line 2 was neither claimed nor sent, so it is returned as a line without an outcome.
	expect(claimed).toEqual([1]);
	expect((await Array.fromAsync(work.rest())).map(({ line }) => line)).toEqual([2]);
});

test("batch lines refused for lack of memory are sent again", async () => {
	const LINES = 5;
	const clock = createManualClock();
	const refused = new Set<string>();
	const answered: number[] = [];
	let asked = 0;
	const work = lineWork({
		...{ lines: LINES, clock },
		claim: async (lines) => new Set(lines.map(({ line }) => line)),
		answer(requestUuid) {
			if (refused.size === LINES) return Response.json({});
			refused.add(requestUuid);
			return Response.json({ error: { code: "overloaded", message: "busy" } }, { status: 503 });
		},
		add: ({ line }) => void answered.push(line),
		async room() {
			asked += 1;
			return asked < 1_000 ? LINES : new Promise<never>(() => {});
		},
		read: (async function* () {
			const prompt = "x".repeat(7 * 1024 * 1024);
			for await (const line of linesOf(LINES)) yield { ...line, text: chatLine(`n${line.line}`, prompt) };
		})(),
	});
	void work.run();
	for (let second = 0; second < 300 && answered.length < LINES; second += 1) {
		clock.advance(1_000);
		await Bun.sleep(0);
	}
	expect(answered.sort()).toEqual([1, 2, 3, 4, 5]);
});
