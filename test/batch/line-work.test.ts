import { expect, test } from "bun:test";
import { systemClock } from "../../src/base/clock.ts";
import { silentLog } from "../../src/base/log.ts";
import type { BatchBooks, ClaimedLine } from "../../src/batch/batch-books.ts";
import type { BatchRecord } from "../../src/batch/batch-record.ts";
import { createLineWork } from "../../src/batch/line-work.ts";
import type { Outcome, Outcomes } from "../../src/batch/outcomes.ts";
import type { KeyDigest } from "../../src/keys/digest.ts";
import { chatLine } from "./batch-service.ts";

/** Lines whose claims and answers are as told. */
function lineWork(world: {
	lines: number;
	claim(lines: readonly ClaimedLine[]): Promise<ReadonlySet<number>>;
	answer(requestUuid: string): Response;
	add?(outcome: Outcome): void;
}) {
	const books = {
		claim: (_id: string, _run: number, lines: readonly ClaimedLine[]) => world.claim(lines),
	} as Partial<BatchBooks> as BatchBooks;
	const outcomes = { add: world.add ?? (() => {}), bytes: () => 0, pause: () => null } as Partial<Outcomes> as Outcomes;
	const batch = { id: "batch_1", run: 1, endpoint: "/v1/chat/completions" } as BatchRecord;
	return createLineWork(
		{
			...{ books, outcomes, refused: new Set<string>(), clock: systemClock, log: silentLog },
			spool: { add() {}, claims() {}, sends: () => true, mark: () => () => {}, close() {} },
			carrier: {
				answer: async ({ requestUuid }) => world.answer(requestUuid),
				usageOf: () => undefined,
				room: async () => world.lines,
			},
		},
		{ ...batch, model: "test-model", keyDigest: "" as KeyDigest },
		(async function* () {
			for (let line = 1; line <= world.lines; line += 1) yield { line, text: chatLine(`n${line}`), cut: undefined };
		})(),
	);
}

/** Runs one line, whose claims go as `claim` says, and whose answers are these statuses; gives its outcomes. */
async function runLine(
	claim: (attempt: number, carryOut: () => ReadonlySet<number>) => Promise<ReadonlySet<number>>,
	statuses: readonly number[],
): Promise<{ outcomes: Outcome[]; sent: string[] }> {
	let row: string | undefined;
	let attempt = 0;
	const outcomes: Outcome[] = [];
	const sent: string[] = [];
	const answers = [...statuses];
	const work = lineWork({
		lines: 1,
		claim(lines) {
			attempt += 1;
			return claim(attempt, () => {
				// As `batch_claim` does.
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
	test(`a claim whose answer is lost (carried out: ${isCarriedOut}) keeps its line from nothing, sent before or not`, async () => {
		const lost = async (wanted: number, attempt: number, carryOut: () => ReadonlySet<number>) => {
			if (attempt !== wanted) return carryOut();
			if (isCarriedOut) carryOut();
			return away();
		};
		const first = await runLine((attempt, carryOut) => lost(1, attempt, carryOut), []);
		expect(first).toMatchObject({ outcomes: [{ line: 1, file: "output" }], sent: { length: 1 } });
		// Refused once: its row names that request, and the claim of the next one is lost.
		const second = await runLine((attempt, carryOut) => lost(2, attempt, carryOut), [503]);
		expect(second).toMatchObject({ outcomes: [{ line: 1, file: "output" }], sent: { length: 2 } });
	}, 20_000);
}

test("lines that are sent together leave others a turn between any two", async () => {
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
