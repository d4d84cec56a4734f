/** Streams in a closed loop with the time of each event: `count` at once, each followed by the next. */
import { STAMP_DIGITS, STREAM_EVENTS } from "./fast-upstream.ts";
import type { RawConnection } from "./raw-connection.ts";
import { openConnection } from "./raw-connection.ts";
import { sharedMs } from "./shared-clock.ts";

export interface StreamOptions {
	readonly port: number;
	readonly streams: number;
	request(stream: number): Uint8Array;
	/** Time after which no stream starts; running ones are awaited. */
	readonly durationMs: number;
	begin?(): void;
}

export interface StreamResult {
	readonly streams: number;
	/** Events with text, without roles, usage and ends. */
	readonly events: number;
	readonly failures: number;
	readonly firstFailure: string | undefined;
	readonly elapsedMs: number;
	/** From the request to the first event. */
	readonly firstMs: Float64Array;
	/** From an event's departure upstream to its arrival here. */
	readonly delaysMs: Float64Array;
	/** Between two events of a stream that arrived in separate reads. */
	readonly gapsMs: Float64Array;
}

const CONTENT = '"content":"';
const STUCK_MS = 30_000;

interface OpenStream {
	sentAtMs: number;
	lastAtMs: number;
	events: number;
	sawUsage: boolean;
	sawEnd: boolean;
	/** The start of an incomplete event. */
	carry: string;
}

export async function runStreams(options: StreamOptions): Promise<StreamResult> {
	const firstMs: number[] = [];
	const delaysMs: number[] = [];
	const gapsMs: number[] = [];
	const done = Promise.withResolvers<void>();
	const connections: RawConnection[] = [];
	const open: OpenStream[] = [];
	let streams = 0;
	let events = 0;
	let failures = 0;
	let firstFailure: string | undefined;
	let running = options.streams;
	let stopAt = Number.POSITIVE_INFINITY;
	let lastAt = performance.now();

	function fail(reason: string): void {
		failures += 1;
		firstFailure ??= reason;
	}

	function next(index: number): void {
		if (performance.now() >= stopAt) {
			running -= 1;
			if (running === 0) done.resolve();
			return;
		}
		open[index] = { sentAtMs: sharedMs(), lastAtMs: 0, events: 0, sawUsage: false, sawEnd: false, carry: "" };
		connections[index]?.send(options.request(index));
	}

	function take(stream: OpenStream, bytes: Buffer): void {
		// The clock of the upstream's timestamps.
		const atMs = sharedMs();
		const text = stream.carry + bytes.toString("latin1");
		let from = 0;
		for (let end = text.indexOf("\n\n"); end !== -1; end = text.indexOf("\n\n", from)) {
			accept(stream, text.slice(from, end), atMs);
			from = end + 2;
		}
		stream.carry = text.slice(from);
	}

	function accept(stream: OpenStream, event: string, atMs: number): void {
		const at = event.indexOf(CONTENT);
		const stamp = at === -1 ? Number.NaN : Number(event.slice(at + CONTENT.length, at + CONTENT.length + STAMP_DIGITS));
		if (stamp > 0) {
			if (stream.events === 0) firstMs.push(atMs - stream.sentAtMs);
			else if (atMs !== stream.lastAtMs) gapsMs.push(atMs - stream.lastAtMs);
			delaysMs.push(atMs - stamp / 1000);
			stream.lastAtMs = atMs;
			stream.events += 1;
		} else if (event === "data: [DONE]") stream.sawEnd = true;
		if (event.includes('"total_tokens"')) stream.sawUsage = true;
	}

	function ended(stream: OpenStream, status: number): void {
		lastAt = performance.now();
		streams += 1;
		events += stream.events;
		if (status !== 200) fail(`status ${status}`);
		else if (stream.events !== STREAM_EVENTS) fail(`${stream.events} events`);
		else if (!stream.sawUsage || !stream.sawEnd) fail("no usage or no end");
	}

	for (let index = 0; index < options.streams; index++) {
		connections.push(
			await openConnection(options.port, {
				body: (bytes) => take(open[index] as OpenStream, bytes),
				answered(status) {
					ended(open[index] as OpenStream, status);
					next(index);
				},
				broke(reason) {
					fail(reason);
					running -= 1;
					if (running === 0) done.resolve();
				},
			}),
		);
	}
	options.begin?.();
	const startedAt = performance.now();
	stopAt = startedAt + options.durationMs;
	const watch = setInterval(() => {
		if (performance.now() - lastAt > STUCK_MS) done.reject(new Error("the streams are stuck"));
	}, 1_000);
	for (let index = 0; index < options.streams; index++) next(index);
	await done.promise.finally(() => clearInterval(watch));
	for (const connection of connections) connection.close();
	return {
		streams,
		events,
		failures,
		firstFailure,
		elapsedMs: lastAt - startedAt,
		firstMs: Float64Array.from(firstMs),
		delaysMs: Float64Array.from(delaysMs),
		gapsMs: Float64Array.from(gapsMs),
	};
}
