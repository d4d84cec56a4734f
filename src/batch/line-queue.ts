import { newUuid } from "../base/id.ts";
import { type BatchLine, type OpenLine, readCustomId, readLine } from "./batch-line.ts";
import type { BatchRecord } from "./batch-record.ts";
import type { OutcomeWriter } from "./outcomes.ts";

/** Maximum characters of lines that are queued, in flight, or have outcomes that are not stored yet. */
const TEXT_CHARS_MAX = 32 * 1024 * 1024;

/** A line that is queued or in flight. */
export interface QueuedLine extends OpenLine {
	readonly read: BatchLine;
	/** UUID of the last request that sent the line; null if there was none, or if Postgres freed the line. */
	was: string | null;
	/** UUID of a claim whose result is unknown; otherwise null. */
	claimed: string | null;
	failures: number;
}

/** Queue of a batch's lines: first lines to be sent again, then lines of the file while memory allows. */
export function createLineQueue(
	{ outcomes }: { outcomes: OutcomeWriter },
	batch: BatchRecord,
	lines: AsyncGenerator<OpenLine, void>,
) {
	const again: QueuedLine[] = [];
	let exhausted = false;
	let chars = 0;

	async function next(isStopped: () => boolean): Promise<QueuedLine | undefined> {
		const before = again.shift();
		if (before !== undefined) return before;
		if (exhausted || isStopped()) return undefined;
		const { value, done } = await lines.next();
		if (done === true || value === undefined) {
			exhausted = true;
			return undefined;
		}
		const read = await readLine(value.text, batch.endpoint);
		if ("code" in read) throw new Error(`line ${value.line} of ${batch.id} is not what was checked`);
		chars += value.text.length;
		return { ...value, read, was: null, claimed: null, failures: 0 };
	}

	return {
		again,
		isEmpty: () => exhausted && again.length === 0,
		isFull: () => outcomes.bytes() + chars >= TEXT_CHARS_MAX,
		async take(count: number, isStopped: () => boolean): Promise<QueuedLine[]> {
			const taken: QueuedLine[] = [];
			// Lines to be sent again are in memory already, so the limit does not apply; otherwise sending could stop.
			while (taken.length < count && (again.length > 0 || chars < TEXT_CHARS_MAX)) {
				const work = await next(isStopped).catch((error: unknown) => {
					again.push(...taken);
					throw error;
				});
				if (work === undefined) break;
				taken.push(work);
			}
			return taken;
		},
		/** Call it when a line has its outcome, to free the line's memory. */
		ended(work: QueuedLine): void {
			chars -= work.text.length;
		},
		/** Frees waiting lines in Postgres, because the next run would otherwise treat them as interrupted. */
		giveBack(): void {
			for (const work of again) {
				for (const id of [work.was, work.claimed]) if (id !== null) outcomes.release(work.line, id);
				work.was = null;
				work.claimed = null;
			}
		},
		/** Yields the lines without an outcome. Call it only after the last `take`. */
		async *rest(): AsyncGenerator<{ line: number; id: string; customId: string }, void> {
			for (const { line, read } of again.splice(0)) yield { line, id: newUuid(), customId: read.customId };
			for await (const { line, text } of lines) yield { line, id: newUuid(), customId: readCustomId(text) };
		},
	};
}
