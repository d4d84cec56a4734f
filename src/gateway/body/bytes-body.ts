import type { Clock } from "../../base/clock.ts";
import { Fault } from "../../base/fault.ts";

/** As long as a form may take. */
const READ_DEADLINE_MS = 10 * 60_000;

/** A body of any kind, at most `bytesMax` bytes of it. Faults: payload_too_large, request_timeout. */
export async function readBytes(request: Request, bytesMax: number, clock: Clock): Promise<Uint8Array<ArrayBuffer>> {
	if (Number(request.headers.get("content-length") ?? 0) > bytesMax) throw bodyTooLarge(bytesMax);
	const late = Promise.withResolvers<never>();
	const cancel = clock.after(READ_DEADLINE_MS, () =>
		late.reject(new Fault("request_timeout", "The body was sent too slowly.")),
	);
	try {
		return await Promise.race([collect(request, bytesMax), late.promise]);
	} catch (error) {
		if (error instanceof Fault) throw error;
		throw new Fault("request_timeout", "The body did not arrive in full.", { cause: error });
	} finally {
		cancel();
	}
}

async function collect(request: Request, bytesMax: number): Promise<Uint8Array<ArrayBuffer>> {
	if (request.headers.has("content-length") || request.body === null) return request.bytes();
	// A body without a length is counted while it arrives.
	const chunks: Uint8Array[] = [];
	let bytes = 0;
	for await (const chunk of request.body as ReadableStream<Uint8Array> & AsyncIterable<Uint8Array>) {
		bytes += chunk.length;
		if (bytes > bytesMax) throw bodyTooLarge(bytesMax);
		chunks.push(chunk);
	}
	return new Uint8Array(Buffer.concat(chunks));
}

export function bodyTooLarge(bytesMax: number): Fault {
	return new Fault("payload_too_large", `The body is larger than ${Math.floor(bytesMax / (1024 * 1024))} MB.`);
}
