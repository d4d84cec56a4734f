import { type Clock, sleep } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { isDatabaseAway } from "../db/outage.ts";
import { ZERO_USD } from "../money/nano-usd.ts";
import type { BatchBooks, LineOutcome } from "./batch-books.ts";
import type { BatchPause, BatchUsage } from "./batch-record.ts";

/** A newer run has the batch: unsaved outcomes of this one are dropped. */
export class RunLost extends Error {
	override readonly name = "RunLost" as const;
}

/** Writes lines to the books, retrying until they are taken. */
export interface LineRows {
	/** Resolves with the rows as they were taken. Rejects with RunLost, or when `signal` aborts. */
	keep(rows: readonly LineOutcome[], signal: AbortSignal): Promise<readonly LineOutcome[]>;
	/** Why the batch is paused: its outcomes are refused. */
	pause(): BatchPause | null;
	/** To be called after the signals of all pending `keep` calls were aborted. */
	stop(): void;
}

export const RETRY_MS = 500;
/** After so many refusals that are no outage, a statement is halved, down to the row that causes them. */
const REFUSALS_MAX = 3;
/** If a row is refused even without its usage, the cause is the database, which an operator must repair. */
const REFUSED_RETRY_MS = 15_000;

export const NOTHING = {
	promptTokens: 0,
	cachedTokens: 0,
	completionTokens: 0,
	reasoningTokens: 0,
	charged: ZERO_USD,
} as const;

export function createLineRows(
	deps: { books: BatchBooks; clock: Clock; log: Log /** Batches that wait so. */; refused: Set<string> },
	{ batchId, run }: { batchId: string; run: number },
): LineRows {
	const { books, clock, log, refused } = deps;
	let pause: BatchPause | null = null;

	/** The reason for a refusal; undefined if the rows were taken. Retries while the database is away. */
	async function refusalOf(rows: readonly LineOutcome[], signal: AbortSignal): Promise<unknown> {
		for (;;) {
			signal.throwIfAborted();
			try {
				if (await books.outcomes(batchId, run, rows)) return undefined;
			} catch (error) {
				if (!isDatabaseAway(error)) return error;
				log.info("outcomes of a batch could not be written down; trying again", { batch: batchId, error });
				await sleep(clock, RETRY_MS);
				continue;
			}
			throw new RunLost();
		}
	}

	async function keep(rows: readonly LineOutcome[], signal: AbortSignal): Promise<readonly LineOutcome[]> {
		for (let refusals = 0; refusals < REFUSALS_MAX; refusals++) {
			if (refusals > 0) await sleep(clock, RETRY_MS);
			const error = await refusalOf(rows, signal);
			if (error === undefined) return rows;
			log.warn("outcomes of a batch were refused; trying again", { batch: batchId, lines: rows.length, error });
		}
		const [row, ...others] = rows;
		if (row === undefined) return rows;
		if (others.length === 0) return [await keepOne(row, signal)];
		const half = Math.ceil(rows.length / 2);
		const first = await keep(rows.slice(0, half), signal);
		return [...first, ...(await keep(rows.slice(half), signal))];
	}

	/**
	 * Writes the row, or else the row without its usage: the answer is in its file and the charge in the ledger all the
	 * same.
	 */
	async function keepOne(row: LineOutcome, signal: AbortSignal): Promise<LineOutcome> {
		const bare = { ...row, ...NOTHING };
		for (;;) {
			const refusal = await refusalOf([row], signal);
			if (refusal === undefined) return taken(row);
			if ((await refusalOf([bare], signal)) === undefined) {
				// The cause may have ended between the two statements: then the full row replaces the bare one.
				const error = await refusalOf([row], signal);
				if (error === undefined) return taken(row);
				log.error("what a line of a batch used is refused; the batch's sums are without it", {
					...{ batch: batchId, line: row.line, request: row.id, row: JSON.stringify(row), error },
				});
				return taken(bare);
			}
			// The run may have ended while the statement ran.
			signal.throwIfAborted();
			wait(refusal);
			await sleepUntil(clock, REFUSED_RETRY_MS, signal);
		}
	}

	function taken(row: LineOutcome): LineOutcome {
		if (pause !== null) {
			log.info("outcomes of a batch are taken again", { batch: batchId });
			stop();
		}
		return row;
	}

	function wait(error: unknown): void {
		if (pause !== null) return;
		log.error("outcomes of a batch are refused again and again; it sends nothing more until they are taken", {
			batch: batchId,
			error,
		});
		pause = { ...REFUSED, sinceMs: clock.wallMs() };
		refused.add(batchId);
	}

	function stop(): void {
		pause = null;
		refused.delete(batchId);
	}

	return { keep, pause: () => pause, stop };
}

const REFUSED = {
	code: "service_unavailable",
	message: "What was answered cannot be written down at the moment. It is kept, and the batch goes on by itself.",
} as const;

export type RowUsage = Pick<LineOutcome, keyof typeof NOTHING>;

/** Token columns are 32 bits wide. */
const COUNT_MAX = 2 ** 31 - 1;

export function rowUsage(usage: BatchUsage | undefined): RowUsage {
	if (usage === undefined) return NOTHING;
	return {
		promptTokens: Math.min(usage.promptTokens, COUNT_MAX),
		cachedTokens: Math.min(usage.cachedTokens, COUNT_MAX),
		completionTokens: Math.min(usage.completionTokens, COUNT_MAX),
		reasoningTokens: Math.min(usage.reasoningTokens, COUNT_MAX),
		charged: usage.chargedNanoUsd,
	};
}

/** Sleeps until the delay is over or `signal` aborts. */
function sleepUntil(clock: Clock, delayMs: number, signal: AbortSignal): Promise<void> {
	return new Promise((resolve) => {
		const end = () => {
			cancel();
			signal.removeEventListener("abort", end);
			resolve();
		};
		const cancel = clock.after(delayMs, end);
		if (signal.aborted) end();
		else signal.addEventListener("abort", end);
	});
}
