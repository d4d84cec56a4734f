import { type InputLine, inputLines } from "./input-lines.ts";

export interface OpenLine {
	readonly line: number;
	readonly text: string;
}

/** The input cannot be read further, now or (if its bytes are lost) ever. */
export class InputUnreadable extends Error {
	override readonly name = "InputUnreadable" as const;
}

/** The lines of an input that are not in `done`. Throws InputUnreadable. */
export async function* openLines(
	bytes: ReadableStream<Uint8Array>,
	done: ReadonlySet<number>,
): AsyncGenerator<OpenLine, void> {
	try {
		for await (const { line, text } of inputLines(bytes) as AsyncIterable<InputLine>) {
			// The input was validated and never changes.
			if (text === undefined || done.has(line)) continue;
			yield { line, text };
		}
	} catch (cause) {
		throw new InputUnreadable("the input of the batch cannot be read on", { cause });
	}
}
