import { parseInTurns } from "../../base/json-in-turns.ts";
import { createTimeSlice } from "../../base/time-slice.ts";
import { parseJson } from "../wire-value.ts";
import { UpstreamFailure } from "./failure.ts";

export const ANSWER_BYTES_MAX = 64 * 1024 * 1024;
/** Largest answer to a batch line, as large as a line, since both are processed as one text. */
export const LINE_ANSWER_BYTES_MAX = 8 * 1024 * 1024;
/** Longer bodies are parsed in time slices. */
const SHORT_BYTES = 128 * 1024;
/** Bytes of a long answer that arrive at once when reading starts. */
const FIRST_BYTES = 512 * 1024;

/** Whether the declared length allows reading and parsing in one step. */
export function hasShortBody(response: Response): boolean {
	return declaredBytes(response) <= SHORT_BYTES;
}

/** Reserves memory for more bytes of an answer; returns a promise if they must wait. */
export type TakesAnswer = (bytes: number) => undefined | Promise<void>;

/**
 * Returns the parsed JSON (undefined if invalid), and the body's length if it is long, else 0. Throws UpstreamFailure
 * `failed` above `bytesMax`. Calls `takes` for long bodies only.
 */
export async function readLong(
	response: Response,
	bytesMax: number,
	takes: TakesAnswer,
): Promise<{ value: unknown; bytes: number }> {
	const bytes = await readBytes(response, bytesMax, takes);
	const isLong = bytes.length > SHORT_BYTES;
	return {
		value: isLong ? await parseInTurns(bytes) : parseJson(new TextDecoder().decode(bytes)),
		bytes: isLong ? bytes.length : 0,
	};
}

export async function readText(response: Response, bytesMax: number): Promise<string> {
	return new TextDecoder().decode(await readBytes(response, bytesMax));
}

export async function readBytes(response: Response, bytesMax: number, takes?: TakesAnswer): Promise<Uint8Array> {
	const chunks: Uint8Array[] = [];
	let length = 0;
	let taken = 0;
	if (takes !== undefined && declaredBytes(response) > SHORT_BYTES) {
		taken = Math.min(declaredBytes(response), FIRST_BYTES);
		const room = takes(taken);
		// Reading starts only after this wait: from then on the runtime buffers two megabytes.
		if (room) await room;
	}
	const reader = response.body?.getReader();
	for (;;) {
		const { done, value } = (await reader?.read()) ?? { done: true };
		if (done || value === undefined) break;
		length += value.byteLength;
		if (length > bytesMax) {
			await reader?.cancel();
			throw new UpstreamFailure("failed", { status: response.status, private: "an answer beyond the limit" });
		}
		chunks.push(value);
		if (takes === undefined || length <= Math.max(taken, SHORT_BYTES)) continue;
		const room = takes(length - taken);
		taken = length;
		if (room) await room;
	}
	const [first] = chunks;
	if (chunks.length === 1 && first !== undefined) return first;
	const bytes = Buffer.allocUnsafe(length);
	const timeSlice = createTimeSlice();
	let at = 0;
	for (const chunk of chunks) {
		bytes.set(chunk, at);
		at += chunk.byteLength;
		if (timeSlice.isOver()) await timeSlice.next();
	}
	return bytes;
}

/** Declared length; NaN next to `transfer-encoding`, where it does not apply. */
function declaredBytes({ headers }: Response): number {
	const length = headers.get("content-length");
	return length !== null && /^\d+$/.test(length) && !headers.has("transfer-encoding") ? Number(length) : Number.NaN;
}
