/** Bodies of answers, up to a limit. */

import { parseInTurns } from "../../base/json-in-turns.ts";
import { createTimeSlice } from "../../base/time-slice.ts";
import { parseJson } from "../wire-value.ts";
import { UpstreamFailure } from "./failure.ts";

/** The largest unstreamed answer; a larger one is a failure. */
export const ANSWER_BYTES_MAX = 64 * 1024 * 1024;
/** Of a line of a batch: as much as a line may have itself, since both are handled as one text. */
export const LINE_ANSWER_BYTES_MAX = 8 * 1024 * 1024;
/** A longer one is parsed in turns. */
const SHORT_BYTES = 128 * 1024;
/** As much of a long one comes at once, when it is asked for. */
const FIRST_BYTES = 512 * 1024;

/** Whether the answer says of itself that it is read and parsed in one step: its text is all that there is to wait for. */
export function isShort(response: Response): boolean {
	return declaredBytes(response) <= SHORT_BYTES;
}

/** What finds room for so many more bytes of an answer; a promise where they wait for it. */
export type TakesAnswer = (bytes: number) => undefined | Promise<void>;

/**
 * The body as parsed JSON, undefined if it is none, and its length. Throws UpstreamFailure `failed` beyond `bytesMax`, and what `takes`
 * throws, which hears of a long one.
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

/** The body as text. Throws UpstreamFailure `failed` beyond `bytesMax`. */
export async function readText(response: Response, bytesMax: number): Promise<string> {
	return new TextDecoder().decode(await readBytes(response, bytesMax));
}

async function readBytes(response: Response, bytesMax: number, takes?: TakesAnswer): Promise<Uint8Array> {
	const chunks: Uint8Array[] = [];
	let length = 0;
	let taken = 0;
	if (takes !== undefined && declaredBytes(response) > SHORT_BYTES) {
		taken = Math.min(declaredBytes(response), FIRST_BYTES);
		const room = takes(taken);
		// Its body is not asked for before: from then on the runtime keeps two megabytes of it.
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

/** NaN where nothing holds the server to it: a length beside chunks means nothing. */
function declaredBytes({ headers }: Response): number {
	const length = headers.get("content-length");
	return length !== null && /^\d+$/.test(length) && !headers.has("transfer-encoding") ? Number(length) : Number.NaN;
}
