import type { Clock } from "../../base/clock.ts";
import type { TickBarrier } from "../../base/next-turn.ts";
import type { UpstreamSpec } from "../../catalog/model.ts";
import type { ServiceLimits } from "../../catalog/service-limits.ts";
import type { TraceHeaders } from "../../traces/trace-context.ts";
import { atServerRoot } from "../dialects.ts";
import type { Replica } from "../replicas/replica.ts";
import type { AnswerMemory } from "./answer-memory.ts";
import { unreadable } from "./failure.ts";
import type { OpenCalls } from "./open-calls.ts";
import { readText } from "./read-answer.ts";
import { isOurShortage } from "./upstream-error.ts";

export type Fetch = (url: string, init: BunFetchRequestInit) => Promise<Response>;

export interface CallDeps {
	readonly clock: Clock;
	readonly fetch: Fetch;
	readonly openCalls: OpenCalls;
	readonly answers: AnswerMemory;
	readonly tickBarrier: TickBarrier;
}

/** What is posted. */
export interface UpstreamPost {
	/** Under the replica's base address: `/chat/completions`. */
	readonly path: string;
	/** The path stands at the server's root, beside `/v1`. */
	readonly atRoot?: boolean | undefined;
	/** JSON text, or a form, whose content type the runtime sets with its boundary. */
	readonly body: string | FormData;
}

/** What a server is asked for. */
export type Accepted = "application/json" | "text/event-stream";

/** Whose call it is, and by which connection. */
export interface Sender {
	readonly replica: Replica;
	/** UUID. */
	readonly requestUuid: string;
	readonly signal: AbortSignal;
	/** True to keep off kept-alive connections, one of which has just broken. */
	readonly freshConnection: boolean;
	/** Where the request stands in a trace. */
	readonly traceHeaders?: TraceHeaders | undefined;
}

/** How much of an error's text is read: its reason stands at the beginning. */
const ERROR_BYTES_MAX = 64 * 1024;
/** Where many of more than this wait for each other, the first is cold when it leaves. */
const TOGETHER_CHARS_MAX = 256 * 1024;

/** Whether it is sent with the others of its turn of the event loop, or at once. */
export function leavesTogether({ body }: UpstreamPost): boolean {
	return typeof body === "string" && body.length <= TOGETHER_CHARS_MAX;
}

/**
 * Sends the request before it returns. Only the headers named here leave; redirects are not followed, they would carry
 * the prompt and the key to an address that nobody configured; no proxy of the environment stands in between.
 */
export function postUpstream(deps: CallDeps, sender: Sender, post: UpstreamPost, accept: Accepted): Promise<Response> {
	const spec = sender.replica.spec();
	const common = commonHeaders(spec, accept);
	const { traceHeaders } = sender;
	const isPlain = typeof post.body === "string" && traceHeaders === undefined;
	// The runtime copies them before it returns, so nearly all requests of a replica take the same ones.
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
		// The guard has the deadlines; the runtime's own would cut a slow prefill.
		timeout: false,
		proxy: false,
		// What was not asked for packed is not unpacked: some hundred kilobytes can become a gigabyte.
		decompress: false,
	});
}

const ADDRESSES = new WeakMap<UpstreamSpec, Map<string, string>>();

/** One text for all requests of a replica to the same path under its address: of those there are few. */
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

const COMMON = new WeakMap<UpstreamSpec, Partial<Record<Accepted, Headers>>>();

/** What all requests of a replica have that send JSON and accept the same. */
function commonHeaders(spec: UpstreamSpec, accept: Accepted): Headers {
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

/** Whether the replica's address takes a TCP connection within the connect deadline, as far as one can be begun. */
export async function reachable(
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
			connectError: (_, error) => answer.resolve(isOurShortage(error)),
			data() {},
		},
	}).catch((error) => answer.resolve(isOurShortage(error)));
	const verdict = await answer.promise;
	cancel();
	return verdict;
}

/** Throws, or rejects with, the failure that an answer with another status than 200, or in an encoding, stands for. */
export function assertAnswered(response: Response, replica: Replica): undefined | Promise<never> {
	const encoding = response.headers.get("content-encoding");
	const isPlain = encoding === null || encoding.trim() === "" || encoding.trim().toLowerCase() === "identity";
	if (response.status === 200) {
		if (!isPlain) throw unreadable("an answer in an encoding that was not asked for");
		return undefined;
	}
	if (!isPlain) throw replica.dialect.failureOfStatus(response.status, "");
	return failWithItsText(response, replica);
}

async function failWithItsText(response: Response, replica: Replica): Promise<never> {
	const text = await readText(response, ERROR_BYTES_MAX).catch(() => "");
	throw replica.dialect.failureOfStatus(response.status, text);
}

/** Lets go of a body that nobody will read, so that its connection and memory are freed. */
export function discard(response: Response | undefined): void {
	if (response?.body && !response.body.locked) response.body.cancel().catch(() => {});
}
