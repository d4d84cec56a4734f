import { Fault } from "../../base/fault.ts";
import { checkAccess, checkKey } from "../../keys/access.ts";
import type { KeyEntry } from "../../keys/key-entry.ts";
import type { BodyHold } from "../body/body-memory.ts";
import { readBytes } from "../body/bytes-body.ts";
import type { Connection } from "../connection.ts";
import type { ServeDeps } from "../serve/context.ts";
import { createContext } from "../serve/context.ts";
import { refuse } from "../serve/refuse.ts";
import type { ServedEndpoint } from "../serve/served-endpoint.ts";
import type { Claim, IdempotencyStore, StoredAnswer } from "./idempotency-store.ts";

const IDEMPOTENCY_HEADER = "idempotency-key";
/** Printable ASCII. */
const KEY = /^[\x21-\x7e]{1,255}$/;
const ERROR_EVENT = /(?:^|\n)data: \{"error":/;
const END = "data: [DONE]\n\n";

/**
 * Lets a client repeat a request that it does not know the outcome of: the same `Idempotency-Key` with the same body
 * replays the first answer at no charge. Only whole answers with status 200 are kept: what failed, or broke off because
 * the client left, cost what was delivered and runs anew. A request without the header pays one look at its headers.
 */
export function idempotent(deps: ServeDeps, store: IdempotencyStore, endpoint: ServedEndpoint) {
	return (connection: Connection): Promise<Response> => {
		const header = connection.request.headers.get(IDEMPOTENCY_HEADER);
		return header === null ? endpoint.answer(deps, connection) : once(deps, store, endpoint, connection, header);
	};
}

async function once(
	deps: ServeDeps,
	store: IdempotencyStore,
	endpoint: ServedEndpoint,
	connection: Connection,
	header: string,
): Promise<Response> {
	const { request } = connection;
	const context = createContext(endpoint.name, connection, deps.clock);
	let claim: Claim;
	let key: KeyEntry;
	let body: Uint8Array<ArrayBuffer>;
	let held: BodyHold | undefined;
	try {
		if (!KEY.test(header))
			throw new Fault("invalid_request", "`Idempotency-Key` must be 1 to 255 printable characters.");
		const known = deps.authenticate(connection);
		key = known instanceof Promise ? await known : known;
		context.key = key;
		checkAccess(key, deps.clock.wallMs());
		held = deps.bodyMemory.hold(key.accountId);
		body = await readBytes(request, deps.limits().bodyBytesMax, deps.clock, held.take);
		// By key and not by account: what one key may ask for another may not be allowed to see.
		claim = store.claim(key.accountId, `${key.id} ${header}`, fingerprintOf(request, body));
		if (claim.state === "stored") {
			// A replay passes no admission, which looks at the key again after the body was read: this is its place.
			checkKey(key, deps.clock.wallMs());
			return replayOf(claim.answer);
		}
		if (claim.state === "mismatch")
			throw new Fault("idempotency_mismatch", "This `Idempotency-Key` was used for another request.");
		if (claim.state === "running") {
			throw new Fault("conflict", "The first request with this `Idempotency-Key` is still running.", {
				retryAfterS: 1,
			});
		}
	} catch (error) {
		return refuse(deps, context, { error, admitted: false });
	} finally {
		// The road counts it again, for as long as it needs it.
		held?.release();
	}
	// A client that leaves before its stream is first read leaves no other trace.
	const release = claim.release;
	request.signal.addEventListener("abort", () => release(), { once: true });
	const copy = new Request(request.url, { method: "POST", headers: request.headers, body, signal: request.signal });
	try {
		const response = await endpoint.answer(deps, { ...connection, request: copy }, () => key);
		return await recorded(response, claim);
	} catch (error) {
		claim.release();
		throw error;
	}
}

function fingerprintOf(request: Request, body: Uint8Array): string {
	const hash = new Bun.CryptoHasher("sha256");
	return hash
		.update(`${new URL(request.url).pathname}\n`)
		.update(body)
		.digest("base64");
}

function replayOf({ status, headers, body }: StoredAnswer): Response {
	const replay = new Headers(headers.map(([name, value]) => [name, value]));
	replay.set("idempotent-replayed", "true");
	return new Response(body as Uint8Array<ArrayBuffer>, { status, headers: replay });
}

async function recorded(response: Response, claim: Claim & { state: "new" }): Promise<Response> {
	if (response.status !== 200 || response.body === null) {
		claim.release();
		return response;
	}
	const headers = [...response.headers];
	if (response.headers.get("content-type")?.startsWith("text/event-stream") !== true) {
		const body = await response.bytes();
		claim.store({ status: 200, headers, body });
		return new Response(body, { status: 200, headers });
	}
	return new Response(recordedStream(response.body, headers, claim), { status: 200, headers });
}

/** Passes a stream on and keeps a copy, which counts only once it has come to its proper end. */
function recordedStream(
	source: ReadableStream,
	headers: readonly (readonly [string, string])[],
	claim: Claim & { state: "new" },
): ReadableStream {
	const reader = source.getReader() as ReadableStreamDefaultReader<string | Uint8Array>;
	const decoder = new TextDecoder();
	let text = "";
	return new ReadableStream({
		async pull(controller) {
			try {
				const { done, value } = await reader.read();
				if (!done) {
					text += typeof value === "string" ? value : decoder.decode(value, { stream: true });
					controller.enqueue(value);
					return;
				}
				if (text.endsWith(END) && !ERROR_EVENT.test(text))
					claim.store({ status: 200, headers, body: new TextEncoder().encode(text) });
				else claim.release();
				controller.close();
			} catch (error) {
				claim.release();
				controller.error(error);
			}
		},
		cancel(reason) {
			claim.release();
			return reader.cancel(reason);
		},
	});
}
