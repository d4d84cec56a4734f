import { newUuid } from "../base/id.ts";
import { type BatchLine, type OpenLine, readCustomId, readLine } from "./batch-line.ts";
import type { BatchRecord } from "./batch-record.ts";
import type { Outcomes } from "./outcomes.ts";

/** Most characters of lines that wait or are being sent, with outcomes that are not stored. */
const TEXT_CHARS_MAX = 32 * 1024 * 1024;

/** A line that waits or is being sent. */
export interface QueuedLine extends OpenLine {
	readonly read: BatchLine;
	/** The last request that sent the line; null if none did, or if Postgres freed it. */
	was: string | null;
	/** Request id of a claim whose result is unknown; else null. */
	claimed: string | null;
	failures: number;
}

/** Queue of a batch's lines: first those to be sent again, then lines of the file while memory allows. */
export function createLineQueue(
	{ outcomes }: { outcomes: Outcomes },
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
			// Lines to be sent again are in memory already, so no limit applies: otherwise sending could stop for ever.
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
		/** Removes a line that has its outcome. */
		ended(work: QueuedLine): void {
			chars -= work.text.length;
		},
		/** Frees waiting lines in Postgres; otherwise the next run would treat them as interrupted. */
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
