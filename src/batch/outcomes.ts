import type { Clock } from "../base/clock.ts";
import { sleep } from "../base/clock.ts";
import { Fault } from "../base/fault.ts";
import type { Log } from "../base/log.ts";
import type { FileWriter } from "../files/file-writer.ts";
import type { NanoUsd } from "../money/nano-usd.ts";
import { addUsd, ZERO_USD } from "../money/nano-usd.ts";
import type { BatchBooks, LineOutcome, LineRow } from "./batch-books.ts";
import type { BatchUsage } from "./batch-record.ts";
import type { RunSpool } from "./run-spool.ts";

/** A newer run has the batch: what this one does not have in the books yet is not its any more. */
export class RunLost extends Error {
	override readonly name = "RunLost" as const;
}

/** What became of one line. */
export interface Outcome {
	readonly line: number;
	/** UUID of the request that carried it. */
	readonly id: string;
	readonly file: "output" | "error";
	/** As it stands in that file, with its line end. */
	readonly text: string;
	/** What it used; undefined if nothing was charged. */
	readonly usage: BatchUsage | undefined;
}

/** The outcomes of a run: they gather in memory and on this machine's disk, and count once they are sealed in their files. */
export interface Outcomes {
	add(outcome: Outcome): void;
	/** The line was not charged and may be sent again, by anybody. */
	release(line: number, id: string): void;
	/** Not sealed yet. */
	bytes(): number;
	pending(): number;
	/** How many parts there are by now. */
	parts(): number;
	/**
	 * Resolves once all that was added before is sealed and in the books; waits for a database or a store that is away.
	 * Rejects with RunLost, with a Fault of the files (no space, or they are gone), or when `signal` aborts.
	 */
	flush(signal: AbortSignal): Promise<void>;
	/** Takes in what an earlier run sealed. */
	restore(row: LineRow): void;
	counts(): { completed: number; failed: number } & BatchUsage;
}

const RETRY_MS = 500;
const NOTHING = { prompt: 0, cached: 0, completion: 0, reasoning: 0, charged: ZERO_USD } as const;
/** Columns of counts are 32 bits wide. */
const COUNT_MAX = 2 ** 31 - 1;

export function createOutcomes(
	deps: { books: BatchBooks; clock: Clock; log: Log },
	run: { batchId: string; run: number; output: FileWriter; error: FileWriter; spool: RunSpool },
): Outcomes {
	const { books, clock, log } = deps;
	const { batchId, output, error, spool } = run;
	let waiting: Outcome[] = [];
	let released: LineOutcome[] = [];
	let waitingBytes = 0;
	let sealingBytes = 0;
	const sum = { completed: 0, failed: 0, promptTokens: 0, cachedTokens: 0, completionTokens: 0, reasoningTokens: 0 };
	let charged: NanoUsd = ZERO_USD;
	let flushing: Promise<void> = Promise.resolve();

	function count(row: Omit<LineOutcome, "id" | "part">): void {
		if (row.state === "output") sum.completed += 1;
		else if (row.state === "error") sum.failed += 1;
		sum.promptTokens += row.prompt;
		sum.cachedTokens += row.cached;
		sum.completionTokens += row.completion;
		sum.reasoningTokens += row.reasoning;
		charged = addUsd(charged, row.charged);
	}

	/** Again and again while something is away: each step may be repeated. */
	async function insist<T>(step: () => Promise<T>, signal: AbortSignal): Promise<T> {
		for (;;) {
			signal.throwIfAborted();
			try {
				return await step();
			} catch (failure) {
				if (failure instanceof Fault && failure.code !== "overloaded") throw failure;
				log.info("outcomes of a batch could not be kept; trying again", { batch: batchId, error: failure });
				await sleep(clock, RETRY_MS);
			}
		}
	}

	async function flushNow(signal: AbortSignal): Promise<void> {
		if (waiting.length === 0 && released.length === 0) return;
		const taken = waiting;
		const free = released;
		const forget = spool.mark();
		sealingBytes = waitingBytes;
		waiting = [];
		released = [];
		waitingBytes = 0;
		const parts = { output: output.parts(), error: error.parts() };
		const rows = [...taken.map((one) => rowOf(one, parts[one.file])), ...free];
		// Written down before the part is there: a part that is sealed tells then which lines are in it.
		for (const once of inStatements(rows))
			if (!(await insist(() => books.outcomes(batchId, run.run, once), signal))) throw new RunLost();
		for (const file of ["output", "error"] as const) {
			const texts = taken.filter((one) => one.file === file).map(({ text }) => text);
			if (texts.length === 0) continue;
			const writer = file === "output" ? output : error;
			writer.write(texts.join(""));
			await insist(() => writer.seal(), signal);
		}
		for (const row of rows) count(row);
		sealingBytes = 0;
		forget();
	}

	return {
		add(outcome) {
			waiting.push(outcome);
			waitingBytes += outcome.text.length;
			const { line, id, ...answer } = outcome;
			spool.add({ line, id, answer });
		},
		release(line, id) {
			released.push({ line, id, state: "free", part: null, ...NOTHING });
		},
		bytes: () => waitingBytes + sealingBytes,
		pending: () => waiting.length + released.length,
		parts: () => output.parts() + error.parts(),
		flush(signal) {
			const mine = flushing.then(() => flushNow(signal));
			flushing = mine.catch(() => {});
			return mine;
		},
		restore(row) {
			if (row.state !== "claimed") count({ ...row, state: row.state });
		},
		counts: () => ({ ...sum, chargedNanoUsd: charged }),
	};
}

/**
 * A statement writes no row twice. Of a line whose claim was lost both requests are given back that may have it, and it may be
 * sent and answered again before that is written: what is said of one line stands in statements of their own, in any order.
 */
function inStatements(rows: readonly LineOutcome[]): LineOutcome[][] {
	const statements: LineOutcome[][] = [];
	const said = new Map<number, number>();
	for (const row of rows) {
		const at = said.get(row.line) ?? 0;
		said.set(row.line, at + 1);
		const statement = statements[at];
		if (statement === undefined) statements.push([row]);
		else statement.push(row);
	}
	return statements;
}

function rowOf({ line, id, file, usage }: Outcome, part: number): LineOutcome {
	if (usage === undefined) return { line, id, state: file, part, ...NOTHING };
	return {
		line,
		id,
		state: file,
		part,
		prompt: Math.min(usage.promptTokens, COUNT_MAX),
		cached: Math.min(usage.cachedTokens, COUNT_MAX),
		completion: Math.min(usage.completionTokens, COUNT_MAX),
		reasoning: Math.min(usage.reasoningTokens, COUNT_MAX),
		charged: usage.chargedNanoUsd,
	};
}
