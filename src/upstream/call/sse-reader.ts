/** Parses server-sent events from an untrusted server. Works on bytes, because a chunk may end within a character. */
import { asObject, exceedsWireLimits, type JsonObject, withExactToolArguments } from "../wire-value.ts";
import { crashFailure, serverFailure, type UpstreamFailure } from "./failure.ts";

const EVENT_BYTES_MAX = 1024 * 1024;

const LF = 0x0a;
const CR = 0x0d;
const SPACE = 0x20;
const COLON = 0x3a;
const CARRY_BYTES_MIN = 1024;
const NO_BYTES = Buffer.alloc(0);

/** A class, because closures would be six more objects per open stream. */
export class SseReader {
	readonly #eventBytesMax: number;
	/** The unfinished line: `carry[0, carried)`. The buffer doubles, so that the cost per byte stays constant. */
	#carry: Buffer = NO_BYTES;
	#carried = 0;
	/** Data of the current event; undefined before its first `data` line. */
	#data: string | undefined;
	#dataBytes = 0;
	#afterCr = false;
	#atStart = true;
	/** Reused by all calls of `push`, which usually return a single event. */
	readonly #events: string[] = [];

	constructor(eventBytesMax = EVENT_BYTES_MAX) {
		this.#eventBytesMax = eventBytesMax;
	}

	/**
	 * Returns the `data` of the events that `bytes` complete, without comments and other fields. Throws UpstreamFailure
	 * `failed` above the limit. The next call empties the returned list.
	 */
	push(bytes: Uint8Array): string[] {
		this.#events.length = 0;
		const view = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
		const end = view.length;
		let at = 0;
		if (this.#afterCr && end > 0) {
			this.#afterCr = false;
			if (view[0] === LF) at = 1;
		}
		// JSON contains no raw CR, so a fast native search for LF usually suffices.
		const lfOnly = view.indexOf(CR, at) === -1;
		while (at < end) {
			const lineEnd = lfOnly ? view.indexOf(LF, at) : lineBreak(view, at);
			if (lineEnd === -1) {
				this.#keep(view, at, end);
				break;
			}
			if (this.#carried === 0) this.#acceptLine(view, at, lineEnd);
			else this.#finishCarried(view, at, lineEnd);
			at = lineEnd + 1;
			if (view[lineEnd] !== CR) continue;
			if (at === end) this.#afterCr = true;
			else if (view[at] === LF) at += 1;
		}
		return this.#events;
	}

	/** Returns an event whose blank line is missing because the stream ended. Its last line may be cut off. */
	end(): string[] {
		this.#events.length = 0;
		if (this.#carried > 0) this.#finishCarried(NO_BYTES, 0, 0);
		this.#dispatch();
		return this.#events;
	}

	#finishCarried(view: Buffer, from: number, to: number): void {
		this.#keep(view, from, to);
		const length = this.#carried;
		this.#carried = 0;
		this.#acceptLine(this.#carry, 0, length);
	}

	#keep(view: Buffer, from: number, to: number): void {
		const needed = this.#carried + to - from;
		if (needed > this.#eventBytesMax) throw tooLong();
		if (needed > this.#carry.length) {
			const grown = Buffer.allocUnsafe(Math.max(needed, this.#carry.length * 2, CARRY_BYTES_MIN));
			this.#carry.copy(grown, 0, 0, this.#carried);
			this.#carry = grown;
		}
		view.copy(this.#carry, this.#carried, from, to);
		this.#carried = needed;
	}

	#acceptLine(line: Buffer, start: number, to: number): void {
		let from = start;
		if (this.#atStart) {
			this.#atStart = false;
			if (line[from] === 0xef && line[from + 1] === 0xbb && line[from + 2] === 0xbf && to - from >= 3) from += 3;
		}
		if (from === to) {
			this.#dispatch();
			return;
		}
		if (!isData(line, from, to)) {
			// Until 2025, llama.cpp sent errors in a field `error` instead of `data`.
			if (line.toString("latin1", from, Math.min(to, from + 6)) === "error:")
				this.#data = `{"error":${line.toString("utf8", from + 6, to)}}`;
			return;
		}
		from += 5;
		if (from > to) from = to;
		if (from < to && line[from] === SPACE) from += 1;
		this.#dataBytes += to - from + 1;
		if (this.#dataBytes > this.#eventBytesMax) throw tooLong();
		const text = line.toString("utf8", from, to);
		this.#data = this.#data === undefined ? text : `${this.#data}\n${text}`;
	}

	#dispatch(): void {
		if (this.#data === undefined) return;
		this.#events.push(this.#data);
		this.#data = undefined;
		this.#dataBytes = 0;
	}
}

function isData(line: Buffer, from: number, to: number): boolean {
	if (to - from < 4 || line[from] !== 0x64 || line[from + 1] !== 0x61) return false;
	if (line[from + 2] !== 0x74 || line[from + 3] !== 0x61) return false;
	return to - from === 4 || line[from + 4] === COLON;
}

function lineBreak(view: Buffer, from: number): number {
	for (let at = from; at < view.length; at += 1) {
		const byte = view[at];
		if (byte === LF || byte === CR) return at;
	}
	return -1;
}

function tooLong(): UpstreamFailure {
	return serverFailure("a line or an event of the stream passes the limit");
}

const END_MARKER = "[DONE]";

export function isEndMarker(payload: string): boolean {
	return payload === END_MARKER || payload.trim() === END_MARKER;
}

export function parseEvent(payload: string): JsonObject {
	if (exceedsWireLimits(payload)) throw crashFailure("an event with too much structure");
	let value: unknown;
	try {
		value = withExactToolArguments(JSON.parse(payload), payload);
	} catch {
		throw crashFailure("an event that is not JSON");
	}
	const event = asObject(value);
	if (event === undefined) throw crashFailure("an event that is not an object");
	return event;
}
