/**
 * A model server for measurements: raw sockets, prepared answers, its own count of served requests.
 *
 *     bun test/bench/fast-upstream.ts        prints `{"port":…}` once it listens
 *
 * The request's model selects the answer, so that every gateway can use one address: `plain` a whole answer of 600
 * bytes, `stream` 100 events 5 ms apart, `burst` the same events without a pause, `idle` one event and then silence
 * until `POST /release`, `flood` 100 MB of events as fast as the client reads. `GET /count` returns the count so far.
 * Every tenth usage differs, so that a mix-up of two requests shows in the sums.
 */

import type { Socket } from "bun";
import { nowMs } from "../support/wait.ts";

export interface UpstreamCount {
	requests: number;
	prompt: number;
	completion: number;
	aborted: number;
	open: number;
}

export const STREAM_EVENTS = 100;
export const STREAM_GAP_MS = 5;
export const PLAIN_BODY_BYTES = 600;
/** Digits of an event's sending time, in microseconds of the shared clock. */
export const STAMP_DIGITS = 16;
const EVENT_BYTES = 150;
const FLOOD_EVENTS = 700_000;
const VARIANTS = 16;
const PROMPT_TOKENS = 100;
const COMPLETION_TOKENS = 10;
const HEAD_BYTES_MAX = 32 * 1024;
/** The model's name must be near the start of a body; otherwise the whole body is kept and searched. */
const MODEL_WITHIN_BYTES = 96;
const MODEL = /"model": ?"([a-z]+)/;

type Kind = "plain" | "stream" | "burst" | "idle" | "flood";

interface Connection {
	/** Unparsed bytes: the start of a head, or of a body before its model. */
	carry: Buffer | undefined;
	remaining: number;
	kind: Kind | undefined;
	stream: Stream | undefined;
	/** Bytes that the socket has not accepted yet. */
	unsent: Buffer | undefined;
}

interface Stream {
	readonly socket: Socket<Connection>;
	readonly kind: Kind;
	readonly variant: number;
	sent: number;
}

const NO_BYTES = Buffer.alloc(0);
const STREAM_HEAD =
	"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nx-accel-buffering: no\r\ntransfer-encoding: chunked\r\n\r\n";
const EVENT_PREFIX = 'data: {"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"';
const EVENT_SUFFIX = '"},"finish_reason":null}]}\n\n';
const PADDING = " ".repeat(EVENT_BYTES - EVENT_PREFIX.length - EVENT_SUFFIX.length - STAMP_DIGITS);
const EVENT_CHUNK = `${EVENT_BYTES.toString(16)}\r\n${EVENT_PREFIX}`;

const chunk = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n`;
const usageOf = (prompt: number, completion: number) =>
	`"usage":{"prompt_tokens":${prompt},"completion_tokens":${completion},"total_tokens":${prompt + completion}}`;

function plainAnswer(variant: number): Buffer {
	const make = (content: string) =>
		`{"id":"c","object":"chat.completion","created":1,"model":"served","choices":[{"index":0,"message":{"role":"assistant","content":"${content}"},"finish_reason":"stop"}],${usageOf(PROMPT_TOKENS + variant, COMPLETION_TOKENS + variant)}}`;
	const body = make("x".repeat(PLAIN_BODY_BYTES - make("").length));
	return Buffer.from(
		`HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
	);
}

function streamEnd(variant: number, completion: number): string {
	const finish =
		'data: {"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n';
	const usage = `data: {"id":"c","object":"chat.completion.chunk","choices":[],${usageOf(PROMPT_TOKENS + variant, completion)}}\n\n`;
	return `${chunk(`${finish}${usage}data: [DONE]\n\n`)}0\r\n\r\n`;
}

function stampedEvent(): string {
	const stamp = Math.round(nowMs() * 1000)
		.toString()
		.padStart(STAMP_DIGITS, "0");
	return `${EVENT_CHUNK}${stamp}${PADDING}${EVENT_SUFFIX}\r\n`;
}

/** Listens in this process, on a free port of the loopback interface. */
export function startFastUpstream() {
	const count: UpstreamCount = { requests: 0, prompt: 0, completion: 0, aborted: 0, open: 0 };
	const plain = Array.from({ length: VARIANTS }, (_, variant) => plainAnswer(variant));
	/** Streams by the millisecond of the gap in which their events are sent, so that they are not all sent together. */
	const slots = Array.from({ length: STREAM_GAP_MS }, () => new Set<Stream>());
	/** Streams that end on `POST /release`. */
	const released = new Set<Stream>();
	let next = 0;
	let ticks = 0;
	const timer = setInterval(tick, 1);

	function tick(): void {
		ticks += 1;
		for (const stream of slots[ticks % STREAM_GAP_MS] as Set<Stream>) step(stream);
	}

	function step(stream: Stream): void {
		if (stream.sent < STREAM_EVENTS) {
			stream.sent += 1;
			write(stream.socket, Buffer.from(stampedEvent(), "latin1"));
		} else finish(stream);
	}

	function finish(stream: Stream): void {
		write(stream.socket, Buffer.from(streamEnd(stream.variant, stream.sent), "latin1"));
		forget(stream);
		served(PROMPT_TOKENS + stream.variant, stream.sent);
	}

	function forget(stream: Stream): void {
		stream.socket.data.stream = undefined;
		for (const slot of slots) slot.delete(stream);
		released.delete(stream);
		count.open -= 1;
	}

	function served(prompt: number, completion: number): void {
		count.requests += 1;
		count.prompt += prompt;
		count.completion += completion;
	}

	function write(socket: Socket<Connection>, bytes: Buffer): void {
		const { data } = socket;
		if (data.unsent !== undefined) {
			data.unsent = Buffer.concat([data.unsent, bytes]);
			return;
		}
		const taken = Math.max(0, socket.write(bytes));
		if (taken < bytes.length) data.unsent = bytes.subarray(taken);
	}

	function answer(socket: Socket<Connection>, kind: Kind): void {
		next = (next + 1) % VARIANTS;
		if (kind === "plain") {
			served(PROMPT_TOKENS + next, COMPLETION_TOKENS + next);
			write(socket, plain[next] as Buffer);
			return;
		}
		const stream: Stream = { socket, kind, variant: next, sent: 0 };
		socket.data.stream = stream;
		count.open += 1;
		let first = STREAM_HEAD;
		for (let event = 0; event < (kind === "burst" ? STREAM_EVENTS : 1); event++) first += stampedEvent();
		stream.sent = kind === "burst" ? STREAM_EVENTS : 1;
		write(socket, Buffer.from(first, "latin1"));
		if (kind === "burst") finish(stream);
		else if (kind === "flood") flood(stream);
		else if (kind === "stream") (slots[ticks % STREAM_GAP_MS] as Set<Stream>).add(stream);
		else if (kind === "idle") released.add(stream);
	}

	/** Writes until the socket is full, and continues when it has drained. */
	function flood(stream: Stream): void {
		while (stream.socket.data.unsent === undefined && stream.sent < FLOOD_EVENTS) {
			const events = Math.min(100, FLOOD_EVENTS - stream.sent);
			stream.sent += events;
			write(stream.socket, Buffer.from(stampedEvent().repeat(events), "latin1"));
		}
		if (stream.sent >= FLOOD_EVENTS) finish(stream);
	}

	/** Answers requests without inference: GETs and releases. */
	function answerControl(socket: Socket<Connection>, head: string): void {
		let body = '{"object":"list","data":[]}';
		if (head.startsWith("GET /count")) body = JSON.stringify(count);
		if (head.startsWith("POST /release")) release();
		write(
			socket,
			Buffer.from(`HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`),
		);
	}

	function release(): void {
		for (const stream of released) finish(stream);
	}

	function take(socket: Socket<Connection>, bytes: Buffer): void {
		const { data } = socket;
		let view = bytes;
		if (data.carry !== undefined) {
			view = Buffer.concat([data.carry, bytes]);
			data.carry = undefined;
		}
		let at = 0;
		while (at < view.length) {
			if (data.kind !== undefined) {
				const now = Math.min(data.remaining, view.length - at);
				data.remaining -= now;
				at += now;
				if (data.remaining > 0) return;
				const { kind } = data;
				data.kind = undefined;
				answer(socket, kind);
				continue;
			}
			const headEnd = view.indexOf("\r\n\r\n", at);
			if (headEnd === -1) {
				if (view.length - at > HEAD_BYTES_MAX) socket.terminate();
				data.carry = Buffer.from(view.subarray(at));
				return;
			}
			const head = view.toString("latin1", at, headEnd + 2);
			const length = Number(/\r\ncontent-length: *(\d+)/i.exec(head)?.[1] ?? 0);
			const bodyAt = headEnd + 4;
			if (head.startsWith("HEAD ")) {
				socket.write("HTTP/1.1 405 Method Not Allowed\r\ncontent-length: 0\r\n\r\n");
				at = bodyAt;
				continue;
			}
			if (head.startsWith("GET ") || head.startsWith("POST /release")) {
				answerControl(socket, head);
				at = bodyAt + length;
				continue;
			}
			if (view.length - bodyAt < Math.min(length, MODEL_WITHIN_BYTES)) {
				data.carry = Buffer.from(view.subarray(at));
				return;
			}
			const model = MODEL.exec(view.toString("latin1", bodyAt, bodyAt + MODEL_WITHIN_BYTES))?.[1];
			if (model === undefined && view.length - bodyAt < length) {
				data.carry = Buffer.from(view.subarray(at));
				return;
			}
			data.kind = (model ?? MODEL.exec(view.toString("latin1", bodyAt, bodyAt + length))?.[1] ?? "plain") as Kind;
			data.remaining = length;
			at = bodyAt;
		}
	}

	const server = Bun.listen<Connection>({
		hostname: "127.0.0.1",
		port: 0,
		socket: {
			open(socket) {
				socket.data = { carry: undefined, remaining: 0, kind: undefined, stream: undefined, unsent: undefined };
				socket.setNoDelay(true);
			},
			data: (socket, bytes) => take(socket, bytes),
			drain(socket) {
				const bytes = socket.data.unsent ?? NO_BYTES;
				socket.data.unsent = undefined;
				if (bytes.length > 0) write(socket, bytes);
				const { stream } = socket.data;
				if (stream?.kind === "flood") flood(stream);
			},
			close(socket) {
				if (socket.data.stream === undefined) return;
				forget(socket.data.stream);
				count.aborted += 1;
			},
			error() {},
		},
	});
	return {
		port: server.port,
		count: () => ({ ...count }),
		/** Ends all silent streams. */
		release,
		stop() {
			clearInterval(timer);
			server.stop(true);
		},
	};
}

if (import.meta.main) {
	const { port } = startFastUpstream();
	process.stdout.write(`${JSON.stringify({ port })}\n`);
}
