import type { InputLine } from "./input-lines.ts";
import { inputLines } from "./input-lines.ts";

/** What earlier runs left of the lines. */
export interface LinesBefore {
	/** They have their outcome. */
	readonly done: ReadonlySet<number>;
	/** They were claimed, and nobody knows what became of them: by line, the UUID of the request. */
	readonly cut: ReadonlyMap<number, string>;
}

/** A line that is still to have its outcome. */
export interface OpenLine {
	readonly line: number;
	readonly text: string;
	/** UUID of the request that may have carried it, so that it is not sent again; else undefined. */
	readonly cut: string | undefined;
}

/** The input cannot be read on, now or, if its bytes are lost, for ever. */
export class InputUnreadable extends Error {
	override readonly name = "InputUnreadable" as const;
}

/** The lines of an input without those that are done. Throws InputUnreadable. */
export async function* openLines(
	bytes: ReadableStream<Uint8Array>,
	before: LinesBefore,
): AsyncGenerator<OpenLine, void> {
	try {
		for await (const { line, text } of inputLines(bytes) as AsyncIterable<InputLine>) {
			// The input was found as it should be and never changes.
			if (text === undefined || before.done.has(line)) continue;
			yield { line, text, cut: before.cut.get(line) };
		}
	} catch (cause) {
		throw new InputUnreadable("the input of the batch cannot be read on", { cause });
	}
}
