import type { Clock } from "../../base/clock.ts";
import { withDeadline } from "../../base/clock.ts";
import { Fault } from "../../base/fault.ts";

/** A file takes its time on a slow line, but not for ever. */
export const FILE_DEADLINE_MS = 10 * 60_000;

/** Says that so many bytes more are read; throws a Fault if they may not be. */
export type TakeBytes = (bytes: number) => void;

export const takeFreely: TakeBytes = () => {};

/** A body of any kind, at most `bytesMax` bytes of it. Faults: payload_too_large, request_timeout, those of `take`. */
export async function readBytes(
	request: Request,
	bytesMax: number,
	clock: Clock,
	take: TakeBytes = takeFreely,
): Promise<Uint8Array<ArrayBuffer>> {
	const declared = declaredBytes(request, bytesMax, take);
	// To ask for the stream of a body costs more than to read it whole.
	return declared === null && request.body !== null
		? readChunked(request.body, { bytesMax, clock, deadlineMs: FILE_DEADLINE_MS, take })
		: inTime(clock, FILE_DEADLINE_MS, request.bytes());
}

/** The length that the request gives, taken; null if it gives none. Faults: payload_too_large, those of `take`. */
export function declaredBytes(request: Request, bytesMax: number, take: TakeBytes): number | null {
	const header = request.headers.get("content-length");
	if (header === null) return null;
	const declared = Number(header);
	if (declared > bytesMax) throw bodyTooLarge(bytesMax);
	take(declared);
	return declared;
}

/** What was read, if it came before the deadline. Faults: request_timeout, also for what failed; those of `reading`. */
export async function inTime<T>(
	clock: Clock,
	deadlineMs: number,
	reading: Promise<T>,
	onLate?: () => void,
): Promise<T> {
	try {
		return await withDeadline(clock, reading, deadlineMs, onLate === undefined ? tooSlow : () => tooSlow(onLate));
	} catch (error) {
		if (error instanceof Fault) throw error;
		throw new Fault("request_timeout", "The body did not arrive in full.", { cause: error });
	}
}

function tooSlow(onLate?: () => void): Fault {
	onLate?.();
	return new Fault("request_timeout", "The body was sent too slowly.");
}

/** A body without a length is counted while it arrives, and let go when it is too large or too late. */
export function readChunked(
	body: ReadableStream<Uint8Array>,
	{ bytesMax, clock, deadlineMs, take }: { bytesMax: number; clock: Clock; deadlineMs: number; take: TakeBytes },
): Promise<Uint8Array<ArrayBuffer>> {
	const reader = body.getReader();
	const letGo = () => void reader.cancel().catch(() => {});

	async function read(): Promise<Uint8Array<ArrayBuffer>> {
		const chunks: Uint8Array[] = [];
		let bytes = 0;
		for (;;) {
			const { done, value } = await reader.read();
			if (done) return new Uint8Array(Buffer.concat(chunks));
			bytes += value.length;
			if (bytes > bytesMax) {
				letGo();
				throw bodyTooLarge(bytesMax);
			}
			try {
				take(value.length);
			} catch (error) {
				letGo();
				throw error;
			}
			chunks.push(value);
		}
	}

	return inTime(clock, deadlineMs, read(), letGo);
}

function bodyTooLarge(bytesMax: number): Fault {
	return new Fault("payload_too_large", `The body is larger than ${Math.floor(bytesMax / (1024 * 1024))} MB.`);
}
