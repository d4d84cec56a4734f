import { Fault } from "../../../base/fault.ts";

/** Result of measuring a recording, in seconds. */
export interface Measured {
	/** Length of the recording's frames. */
	readonly seconds: number;
	/** Most that any decoder could find in its bytes; at least `seconds`. */
	readonly secondsMax: number;
	/** Length that the headers claim; undefined if none. */
	readonly claimed?: number | undefined;
}

/** Position of the next window; also its least size if `WINDOW_BYTES` are too few. */
export type Window = number | { readonly at: number; readonly bytes: number };

/**
 * A generator that yields the window of the file to read next, and gets its bytes (fewer at the file's end). Other work
 * runs between two windows, so no file blocks the event loop.
 */
export type Walk<Result = Measured> = Generator<Window, Result, Buffer>;

/** Size of a window: larger than any header or page; takes some milliseconds at most. */
const WINDOW_BYTES = 128 * 1024;

export async function runWalk<Result>(file: Blob, walk: Walk<Result>): Promise<Result> {
	let step = walk.next();
	while (!step.done) {
		const { at, bytes } = typeof step.value === "number" ? { at: step.value, bytes: WINDOW_BYTES } : step.value;
		const read = Buffer.from(await file.slice(at, at + bytes).arrayBuffer());
		await new Promise((resolve) => setImmediate(resolve));
		step = walk.next(read);
	}
	return step.value;
}

/** Fault invalid_request for a recording that contradicts itself: decoders differ about its length. */
export function inconsistentFault(detail: string): Fault {
	return new Fault("invalid_request", `\`file\` is damaged or inconsistent: ${detail}. Encode it again.`, {
		param: "file",
	});
}

export function unsupportedFault(detail: string): Fault {
	return new Fault("invalid_request", `\`file\` is not supported: ${detail}.`, { param: "file" });
}
