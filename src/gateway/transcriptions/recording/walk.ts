import { Fault } from "../../../base/fault.ts";

export interface MeasuredRecording {
	readonly seconds: number;
	/** Seconds that a decoder could find in the recording's bytes at most; at least `seconds`. */
	readonly secondsMax: number;
	/** Length that the headers claim; undefined if they claim none. */
	readonly claimed?: number | undefined;
}

/** Position of the next window in the file; the object form also gives a minimum size above `WINDOW_BYTES`. */
export type FileWindow = number | { readonly at: number; readonly bytes: number };

/**
 * A generator that yields the next window of the file to read, and gets the window's bytes (fewer at the file's end).
 * Other requests run between two windows, so no file blocks the event loop.
 */
export type RecordingWalk<Result = MeasuredRecording> = Generator<FileWindow, Result, Buffer>;

/** Size of a window: larger than any header or page. Parsing a window takes some milliseconds at most. */
const WINDOW_BYTES = 128 * 1024;

export async function runWalk<Result>(file: Blob, walk: RecordingWalk<Result>): Promise<Result> {
	let step = walk.next();
	while (!step.done) {
		const { at, bytes } = typeof step.value === "number" ? { at: step.value, bytes: WINDOW_BYTES } : step.value;
		const read = Buffer.from(await file.slice(at, at + bytes).arrayBuffer());
		await new Promise((resolve) => setImmediate(resolve));
		step = walk.next(read);
	}
	return step.value;
}

/** Fault invalid_request for a recording whose parts contradict each other: decoders differ about its length. */
export function inconsistentFault(detail: string): Fault {
	return new Fault("invalid_request", `\`file\` is damaged or inconsistent: ${detail}. Encode it again.`, {
		param: "file",
	});
}

export function unsupportedFault(detail: string): Fault {
	return new Fault("invalid_request", `\`file\` is not supported: ${detail}.`, { param: "file" });
}
