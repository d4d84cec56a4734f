import { type Clock, sleep } from "../base/clock.ts";
import { Fault } from "../base/fault.ts";
import type { Log } from "../base/log.ts";
import { unlessAborted } from "../base/unless-aborted.ts";
import { isDatabaseDown } from "../db/outage.ts";
import type { FileWriter } from "../files/file-transfer.ts";
import { addUsd, ZERO_USD } from "../money/nano-usd.ts";
import { type BatchBooks, type LineOutcome, type LineRow, RunLost } from "./batch-books.ts";
import type { BatchPause, BatchUsage } from "./batch-record.ts";

export interface OutcomeRecord {
	readonly line: number;
	readonly id: string;
	readonly file: "output" | "error";
	/** The line for the file, with its line end. */
	readonly text: string;
	/** Usage of the line's request; undefined if the request was not charged. */
	readonly usage: BatchUsage | undefined;
}

export type OutcomeWriter = ReturnType<typeof createOutcomeWriter>;

const RETRY_MS = 500;
/** After this many refusals by Postgres (not outages) the batch pauses: an operator must repair the database. */
const REFUSALS_MAX = 3;
const REFUSED_RETRY_MS = 15_000;
const REFUSED = {
	code: "service_unavailable",
	message: "The service cannot record answers at the moment. They are kept, and the batch continues automatically.",
} as const;
const NOTHING = {
	promptTokens: 0,
	cachedTokens: 0,
	completionTokens: 0,
	reasoningTokens: 0,
	charged: ZERO_USD,
} as const;

/** Outcomes of a run. They are collected in memory, and count only once they are stored in their files. */
export function createOutcomeWriter(
	deps: { books: BatchBooks; clock: Clock; log: Log /** Ids of paused batches. */; refused: Set<string> },
	run: { batchId: string; run: number; output: FileWriter; error: FileWriter },
) {
	const { clock, log } = deps;
	const { batchId, output, error } = run;
	const lineRows = createLineRows(deps, run);
	let waiting: OutcomeRecord[] = [];
	let released: LineOutcome[] = [];
	let waitingBytes = 0;
	let sealingBytes = 0;
	const sum = {
		completed: 0,
		failed: 0,
		promptTokens: 0,
		cachedTokens: 0,
		completionTokens: 0,
		reasoningTokens: 0,
		chargedNanoUsd: ZERO_USD,
	};
	let flushing: Promise<void> = Promise.resolve();

	function count(row: Omit<LineOutcome, "id" | "part">): void {
		if (row.state === "output") sum.completed += 1;
		else if (row.state === "error") sum.failed += 1;
		sum.promptTokens += row.promptTokens;
		sum.cachedTokens += row.cachedTokens;
		sum.completionTokens += row.completionTokens;
		sum.reasoningTokens += row.reasoningTokens;
		sum.chargedNanoUsd = addUsd(sum.chargedNanoUsd, row.charged);
	}

	/** Repeats a step until it succeeds. Each step is idempotent. */
	async function insist<T>(step: () => Promise<T>, signal: AbortSignal): Promise<T> {
		for (;;) {
			signal.throwIfAborted();
			try {
				return await step();
			} catch (failure) {
				if (failure instanceof Fault && failure.code !== "overloaded") throw failure;
				log.info("outcomes of a batch could not be stored; trying again", { batch: batchId, error: failure });
				await sleep(clock, RETRY_MS);
			}
		}
	}

	async function flushNow(signal: AbortSignal): Promise<void> {
		if (waiting.length === 0 && released.length === 0) return;
		const taken = waiting;
		const free = released;
		sealingBytes = waitingBytes;
		waiting = [];
		released = [];
		waitingBytes = 0;
		const parts = { output: output.parts(), error: error.parts() };
		const rows = [...taken.map((one) => rowOf(one, parts[one.file])), ...free];
		// Rows are stored before the part, so that each stored part has the rows of all its lines.
		for (const once of inStatements(rows)) await lineRows.keep(once, signal);
		for (const file of ["output", "error"] as const) {
			const texts = taken.filter((one) => one.file === file).map(({ text }) => text);
			if (texts.length === 0) continue;
			const writer = file === "output" ? output : error;
			writer.write(texts.join(""));
			await insist(() => writer.seal(), signal);
		}
		for (const row of rows) count(row);
		sealingBytes = 0;
	}

	return {
		add(outcome: OutcomeRecord): void {
			waiting.push(outcome);
			waitingBytes += outcome.text.length;
		},
		/** Frees a line that was not charged, so that any run may send it again. */
		release(line: number, id: string): void {
			released.push({ line, id, state: "free", part: null, ...NOTHING });
		},
		/** Bytes of outcomes that are not stored yet. */
		bytes: () => waitingBytes + sealingBytes,
		pending: () => waiting.length + released.length,
		parts: () => output.parts() + error.parts(),
		/**
		 * Resolves once everything added so far is stored and recorded. Repeats while database or storage fail. Rejects
		 * with RunLost, with a Fault of the files (no space, deleted), or when `signal` aborts.
		 */
		flush(signal: AbortSignal): Promise<void> {
			const mine = flushing.then(() => flushNow(signal));
			flushing = mine.catch(() => {});
			// An earlier flush may be running with another signal, so this call's signal is watched separately.
			return unlessAborted(signal, mine);
		},
		/** Counts a line whose outcome an earlier run has stored. */
		restore(row: LineRow): void {
			if (row.state !== "claimed") count({ ...row, state: row.state });
		},
		counts: (): { completed: number; failed: number } & BatchUsage => ({ ...sum }),
		/** Why the batch is paused; set while Postgres refuses its outcomes. */
		pause: lineRows.pause,
		/** Drops outcomes that are not stored yet. The next run sends their lines again. */
		stop: lineRows.stop,
	};
}

/** Writes rows to Postgres, repeatedly until Postgres accepts them. `pause` is set while it refuses them. */
function createLineRows(
	{ books, clock, log, refused }: Parameters<typeof createOutcomeWriter>[0],
	{ batchId, run }: { readonly batchId: string; readonly run: number },
) {
	let pause: BatchPause | null = null;

	/** Rejects with RunLost, or when `signal` aborts. */
	async function keep(rows: readonly LineOutcome[], signal: AbortSignal): Promise<void> {
		for (let refusals = 0; ; ) {
			signal.throwIfAborted();
			try {
				if (!(await books.outcomes(batchId, run, rows))) throw new RunLost();
				return stop();
			} catch (failure) {
				// The run may have ended while the statement was running.
				signal.throwIfAborted();
				if (failure instanceof RunLost) throw failure;
				const isAway = isDatabaseDown(failure);
				if (!isAway) refusals += 1;
				if (refusals >= REFUSALS_MAX) wait(failure);
				else log.info("outcomes of a batch could not be stored; trying again", { batch: batchId, error: failure });
				await unlessAborted(signal, sleep(clock, pause === null || isAway ? RETRY_MS : REFUSED_RETRY_MS));
			}
		}
	}

	function wait(failure: unknown): void {
		if (pause !== null) return;
		log.error("the database refuses outcomes of a batch repeatedly; the batch is paused", {
			...{ batch: batchId, error: failure },
		});
		pause = { ...REFUSED, sinceMs: clock.wallMs() };
		refused.add(batchId);
	}

	function stop(): void {
		if (pause === null) return;
		log.info("a batch is no longer paused", { batch: batchId });
		pause = null;
		refused.delete(batchId);
	}

	return { keep, pause: () => pause, stop };
}

/**
 * Splits rows so that no statement contains a line twice. After a claim whose result was lost, both requests that it
 * may have claimed are freed, and the line may be answered before that is stored; the order does not matter.
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

function rowOf({ line, id, file, usage }: OutcomeRecord, part: number): LineOutcome {
	const { chargedNanoUsd: charged, ...tokens } = usage ?? { ...NOTHING, chargedNanoUsd: ZERO_USD };
	return { line, id, state: file, part, ...tokens, charged };
}
