import { createFairPool } from "../base/fair-pool.ts";
import { chargeRefusedBody, chargeRefusedWork, nextTurn } from "../base/time-slice.ts";
import { type Connection, isReadWhole, unreadBytes } from "../gateway/connection.ts";
import { addressNetwork } from "../keys/failed-attempts.ts";

type Answer = Response | Promise<Response>;

/** Limits of the rest of a body, which is received after the answer. */
const REST_BYTES_MAX = 32 * 1024 * 1024;
const REST_MS_MAX = 3_000;
/** Of a chunked body only the first pieces are read, because a chunk may have one byte. */
const PIECES_MAX = 64;
/** Bodies whose rest is received at the same time. A chunked one counts as several: it may cost 0.1 s of CPU time. */
const RESTS_MAX = 256;
const RESTS_SHARE = 1 / 8;
const CHUNKED_RESTS = 16;
/** Assumed CPU time for each received byte, in ms. */
const BYTE_MS = 1 / (512 * 1024);

/**
 * Ends the connection of an answer that was given before the request's body was received whole. The rest is received
 * within limits first: a client that is still sending when the connection closes gets a reset instead of the answer.
 */
export function createUnreadBodies(connectionOf: (request: Request) => Connection) {
	const rests = createFairPool({ size: () => RESTS_MAX, share: () => RESTS_SHARE });

	/** Resolves with true when the whole rest was received, with false when the connection must end. */
	async function receiveRest({ address, request }: Connection): Promise<boolean> {
		const owner = addressNetwork(address);
		const isChunked = request.headers.has("transfer-encoding");
		const places = isChunked ? CHUNKED_RESTS : 1;
		// The runtime receives more of a body as soon as `body` is used.
		if (!rests.fits(owner, places)) return isChunked ? free(request) : drop(owner, request);
		if (request.body === null) return false;
		rests.take(owner, places);
		const over = Promise.withResolvers<boolean>();
		const end = () => {
			rests.giveBack(owner, places);
			over.resolve(false);
		};
		const timer = setTimeout(end, REST_MS_MAX);
		const rest = discard(owner, request.body, isChunked ? PIECES_MAX : Number.POSITIVE_INFINITY);
		const isWhole = await Promise.race([rest.catch(() => false), over.promise]);
		// A client that leaves early keeps its places until then; otherwise it could send the next body at once.
		if (isWhole) {
			clearTimeout(timer);
			end();
		}
		return isWhole;
	}

	/** Frees what was received. Otherwise, the next garbage collection would. */
	function free(request: Request): false {
		request.body?.cancel().catch(() => {});
		return false;
	}

	/** Receives the rest without keeping it. The answer ends later, because its client may connect again at once. */
	async function drop(owner: string, request: Request): Promise<false> {
		free(request);
		await Bun.sleep(REST_MS_MAX);
		await chargeRefusedBody(owner, request.signal);
		return false;
	}

	async function endedAnswer(request: Request, answer: Answer): Promise<Response> {
		const response = await answer;
		const isRead = isReadWhole(request);
		if (isRead && response.status !== 408) return response;
		const rest = isRead ? false : receiveRest(connectionOf(request));
		// Closing a connection in the turn that accepted it would let new ones come for as long as clients reconnect.
		await nextTurn();
		const isWhole = await Promise.race([rest, undefined]);
		if (isWhole === true) return response;
		const { status, headers } = response;
		headers.set("connection", "close");
		if (isWhole === false) return response;
		const bytes = await response.bytes();
		const slowly = new ReadableStream({
			start: (controller) => controller.enqueue(bytes),
			async pull(controller) {
				await rest;
				controller.close();
			},
		});
		return new Response(slowly, { status, headers });
	}

	return (request: Request, answer: Answer): Answer =>
		// A declared body that is being read has passed its limit. Comparing its length would cost each request a string.
		(request.bodyUsed && !request.headers.has("transfer-encoding")) || unreadBytes(request) === 0
			? answer
			: endedAnswer(request, answer);
}

/** Reads and drops a body. Resolves with true at its end; never if it is beyond the limits. */
async function discard(owner: string, body: ReadableStream<Uint8Array>, piecesMax: number): Promise<boolean> {
	const reader = body.getReader();
	for (let bytes = 0, pieces = 0; bytes < REST_BYTES_MAX && pieces < piecesMax; pieces += 1) {
		const { done, value } = await reader.read();
		if (done) return true;
		bytes += value.length;
		await chargeRefusedWork(owner, value.length * BYTE_MS);
	}
	// The client keeps what is not read (backpressure).
	return new Promise(() => {});
}
