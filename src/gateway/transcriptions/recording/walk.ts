import { Fault } from "../../../base/fault.ts";

/** What walking through a recording's frames found, in seconds. */
export interface Measured {
	/** What its frames hold. */
	readonly seconds: number;
	/** The most that any decoder could find in its bytes; not below `seconds`. */
	readonly secondsMax: number;
	/** What its own headers say, where they say it. */
	readonly claimed?: number | undefined;
}

/** Where a walk wants to read on, and how many bytes of it at least if `WINDOW_BYTES` are not enough. */
export type Want = number | { readonly at: number; readonly bytes: number };

/**
 * A walk yields what it wants to read and is given it, cut off at the end of the file. It decides frame by frame without
 * waiting; the event loop turns between two windows, so that no file holds it for longer than one of them takes.
 */
export type Walk<Result = Measured> = Generator<Want, Result, Buffer>;

/** Larger than any frame's header or page that has to be seen at once; some milliseconds of the densest frames. */
const WINDOW_BYTES = 128 * 1024;

export async function follow<Result>(file: Blob, walk: Walk<Result>): Promise<Result> {
	let step = walk.next();
	while (!step.done) {
		const { at, bytes } = typeof step.value === "number" ? { at: step.value, bytes: WINDOW_BYTES } : step.value;
		const read = Buffer.from(await file.slice(at, at + bytes).arrayBuffer());
		await new Promise((resolve) => setImmediate(resolve));
		step = walk.next(read);
	}
	return step.value;
}

/** A recording that is not what it says: Fault invalid_request. What decoders make of such files differs. */
export function contradiction(detail: string): Fault {
	return new Fault("invalid_request", `\`file\` is damaged or inconsistent: ${detail}. Encode it again.`, {
		param: "file",
	});
}

export function unsupported(detail: string): Fault {
	return new Fault("invalid_request", `\`file\` is not supported: ${detail}.`, { param: "file" });
}
