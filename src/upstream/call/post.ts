import { brotliDecompressSync, gunzipSync, inflateSync } from "node:zlib";
import type { Clock } from "../../base/clock.ts";
import type { TickBarrier } from "../../base/time-slice.ts";
import type { UpstreamSpec } from "../../catalog/model.ts";
import type { ServiceLimits } from "../../catalog/service-limits.ts";
import type { TraceHeaders } from "../../traces/trace-context.ts";
import { atServerRoot } from "../dialects.ts";
import type { Replica } from "../replicas/replica.ts";
import type { AnswerMemory } from "./answer-memory.ts";
import { readRetryAfter, unreadableAnswer } from "./failure.ts";
import type { OpenCalls } from "./guard.ts";
import { readBytes } from "./read-answer.ts";

export type FetchFunction = (url: string, init: BunFetchRequestInit) => Promise<Response>;

export interface CallDeps {
	readonly clock: Clock;
	readonly fetch: FetchFunction;
	readonly openCalls: OpenCalls;
	readonly answers: AnswerMemory;
	readonly tickBarrier: TickBarrier;
}

export interface UpstreamPost {
	/** Path below the replica's base URL, such as `/chat/completions`. */
	readonly path: string;
	/** True: the path is at the server's root instead of below `/v1`. */
	readonly atRoot?: boolean | undefined;
	/** JSON text, or a form, whose content type with its boundary the runtime sets. */
	readonly body: string | FormData;
}

export type AcceptType = "application/json" | "text/event-stream";

export interface PostContext {
	readonly replica: Replica;
	readonly requestUuid: string;
	readonly signal: AbortSignal;
	/** True: opens a new connection, because a reused connection has just broken. */
	readonly freshConnection: boolean;
	readonly traceHeaders?: TraceHeaders | undefined;
}

/** Bytes that are read of an error's body; its reason is at the start. */
const ERROR_BYTES_MAX = 64 * 1024;
/** Longer bodies are sent immediately: waiting for other requests would cost more CPU time than it saves. */
const TOGETHER_CHARS_MAX = 256 * 1024;

/** True if the request waits for other requests of its event-loop turn and is sent together with them. */
export function isSentWithTick({ body }: UpstreamPost): boolean {
	return typeof body === "string" && body.length <= TOGETHER_CHARS_MAX;
}

/**
 * Sends a request in this step. Does not follow redirects, which would send prompt and key to another address. Ignores
 * the environment's proxy settings.
 */
export function postUpstream(
	deps: CallDeps,
	sender: PostContext,
	post: UpstreamPost,
	accept: AcceptType,
): Promise<Response> {
	const spec = sender.replica.spec();
	const common = commonHeaders(spec, accept);
	const { traceHeaders } = sender;
	const isPlain = typeof post.body === "string" && traceHeaders === undefined;
	// The runtime copies headers, so nearly all requests of a replica can share one object.
	const headers = isPlain ? common : new Headers(common);
	headers.set("x-request-id", sender.requestUuid);
	if (typeof post.body !== "string") headers.delete("content-type");
	if (traceHeaders !== undefined) for (const [name, value] of Object.entries(traceHeaders)) headers.set(name, value);
	return deps.fetch(addressOf(spec, post), {
		method: "POST",
		headers,
		body: post.body,
		signal: sender.signal,
		redirect: "manual",
		keepalive: spec.keepAlive && !sender.freshConnection,
		// The guard enforces the deadlines. The runtime's own timeout would end the slow processing of a long prompt.
		timeout: false,
		proxy: false,
		// No decompression: none was requested, and some hundred kilobytes can expand to a gigabyte.
		decompress: false,
	});
}

const ADDRESSES = new WeakMap<UpstreamSpec, Map<string, string>>();

function addressOf(spec: UpstreamSpec, { path, atRoot }: UpstreamPost): string {
	if (atRoot === true) return atServerRoot(spec.url, path);
	let known = ADDRESSES.get(spec);
	if (known === undefined) {
		known = new Map();
		ADDRESSES.set(spec, known);
	}
	let address = known.get(path);
	if (address === undefined) {
		address = spec.url + path;
		known.set(path, address);
	}
	return address;
}

const COMMON = new WeakMap<UpstreamSpec, Partial<Record<AcceptType, Headers>>>();

function commonHeaders(spec: UpstreamSpec, accept: AcceptType): Headers {
	let known = COMMON.get(spec);
	if (known === undefined) {
		known = {};
		COMMON.set(spec, known);
	}
	known[accept] ??= new Headers({
		accept,
		"accept-encoding": "identity",
		"user-agent": "tollgate",
		"content-type": "application/json",
		...(spec.apiKey === null ? {} : { authorization: `Bearer ${spec.apiKey}` }),
	});
	return known[accept];
}

/** True if the address accepts a TCP connection within the connect deadline. */
export async function isReachable(
	deps: { clock: Clock },
	replica: Replica,
	limits: Pick<ServiceLimits, "connectMs">,
): Promise<boolean> {
	const { hostname, port, protocol } = new URL(replica.spec().url);
	const answer = Promise.withResolvers<boolean>();
	const cancel = deps.clock.after(limits.connectMs, () => answer.resolve(false));
	Bun.connect({
		hostname: hostname.replace(/^\[(.*)\]$/, "$1"),
		port: port === "" ? (protocol === "https:" ? 443 : 80) : Number(port),
		socket: {
			open(socket) {
				socket.end();
				answer.resolve(true);
			},
			connectError: () => answer.resolve(false),
			data() {},
		},
	}).catch(() => answer.resolve(false));
	const verdict = await answer.promise;
	cancel();
	return verdict;
}

/** Throws, or rejects with, a failure for a status other than 200 and 201, or for a compressed answer. */
export function assertAnswered(response: Response, replica: Replica): undefined | Promise<never> {
	if (response.status !== 200 && response.status !== 201) return failWithItsText(response, replica);
	if (encodingOf(response) !== "identity") throw unreadableAnswer("an answer in an encoding that was not requested");
	return undefined;
}

function encodingOf({ headers }: Response): string {
	return headers.get("content-encoding")?.trim().toLowerCase() || "identity";
}

async function failWithItsText(response: Response, replica: Replica): Promise<never> {
	const text = await errorTextOf(response).catch(() => "");
	const failure = replica.dialect.failureOfStatus(response.status, text);
	if (failure.kind === "busy") failure.retryAfterS = readRetryAfter(response.headers);
	throw failure;
}

const UNPACK: Readonly<Record<string, typeof gunzipSync>> = {
	gzip: gunzipSync,
	deflate: inflateSync,
	br: brotliDecompressSync,
};

/** Text of an error. Decompressed up to the size limit, because proxies compress errors without a request. */
async function errorTextOf(response: Response): Promise<string> {
	const bytes = await readBytes(response, ERROR_BYTES_MAX);
	const encoding = encodingOf(response);
	if (encoding === "identity") return new TextDecoder().decode(bytes);
	return UNPACK[encoding]?.(bytes, { maxOutputLength: ERROR_BYTES_MAX }).toString() ?? "";
}

/** Cancels a body that was not read, to free its connection and memory. */
export function cancelBody(response: Response | undefined): void {
	if (response?.body && !response.body.locked) response.body.cancel().catch(() => {});
}
