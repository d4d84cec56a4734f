import { newUuid } from "../base/id.ts";
import type { BatchLine } from "./batch-line.ts";
import { customIdOf, readLine } from "./batch-line.ts";
import type { BatchRecord } from "./batch-record.ts";
import type { OpenLine } from "./line-source.ts";
import type { Outcomes } from "./outcomes.ts";

/** Text of lines that are under way or wait for another attempt, and of outcomes that are not sealed. */
const TEXT_CHARS_MAX = 32 * 1024 * 1024;

/** A line that is to be sent, or is under way. */
export interface Work extends OpenLine {
	readonly read: BatchLine;
	/** The request that carried it last; null before the first, and once it was given back in the books. */
	was: string | null;
	/** The request that it was claimed for last, if nobody knows whether it was; else null. */
	claimed: string | null;
	failures: number;
}

/** The lines of one batch that are to be sent: those for another attempt first, then the file's, as far as memory allows. */
export function createLineQueue(
	{ outcomes }: { outcomes: Outcomes },
	batch: BatchRecord,
	lines: AsyncGenerator<OpenLine, void>,
) {
	const again: Work[] = [];
	let exhausted = false;
	let chars = 0;

	/** The next line to be sent; undefined if there is none at the moment. */
	async function next(isStopped: () => boolean): Promise<Work | undefined> {
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
		/** Whether no line is left to be sent. */
		isEmpty: () => exhausted && again.length === 0,
		/** Whether what is held of lines and outcomes is as much as it may be. */
		isFull: () => outcomes.bytes() + chars >= TEXT_CHARS_MAX,
		async take(count: number, isStopped: () => boolean): Promise<Work[]> {
			const taken: Work[] = [];
			// What is here for another attempt is held already: left lying it would be all that there is, and nothing would be sent.
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
		/** It has its outcome. */
		ended(work: Work): void {
			chars -= work.text.length;
		},
		/** Writes down which lines are not under way any more, so that a crash does not take them for cut off. */
		giveBack(): void {
			for (const work of again) {
				for (const id of [work.was, work.claimed]) if (id !== null) outcomes.release(work.line, id);
				work.was = null;
				work.claimed = null;
			}
		},
		/** What is left, one line after the other, each without its outcome. When nothing is taken any more. */
		async *rest(): AsyncGenerator<{ line: number; id: string; customId: string }, void> {
			for (const { line, read } of again.splice(0)) yield { line, id: newUuid(), customId: read.customId };
			for await (const { line, text } of lines) yield { line, id: newUuid(), customId: customIdOf(text) };
		},
	};
}
