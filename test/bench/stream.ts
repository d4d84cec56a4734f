/** Streamed answers: CPU time of an event and of a short stream, and the time that a gateway adds. */

import { nowMs } from "../support/wait.ts";
import { STAMP_DIGITS, STREAM_EVENTS } from "./fast-upstream.ts";
import type { Figures } from "./figures.ts";
import type { Gateway } from "./gateways.ts";
import { type LoadOptions, runLoad } from "./load.ts";
import { streamBody } from "./prompts.ts";
import { addedMicros, eachRound, eachRoundOverDirect, timed } from "./rounds.ts";
import type { World } from "./world.ts";

const STREAMS = 64;
const WINDOW_MS_MIN = 1_500;
/** Enough streams for the runtime to compile before single streams are timed: its compilers use the gateway's core. */
const WARM_UP_STREAMS = 32;

const SHARES = [
	["p50", 0.5],
	["p99", 0.99],
] as const;

const measure = (world: World, gateway: Gateway, model: string, connections: number, durationMs: number) =>
	timed(world, gateway, (begin) =>
		runStreams({
			...{ port: gateway.port, connections, durationMs, begin },
			request: world.requests(gateway, streamBody(model)),
		}),
	);

function streamGateways({ gateways, product, readingFloor }: World): readonly Gateway[] {
	const others = gateways.filter((gateway) => gateway !== product);
	return [...others, readingFloor, product];
}

/** Measures 64 concurrent streams of 100 events each, 5 ms apart, and the same events without pauses. */
export async function measureStreams(world: World, figures: Figures): Promise<void> {
	const gateways = streamGateways(world);
	// Streams leave the core half idle, so a short window would have too few clock ticks of CPU time.
	const longer = (ms: number, isWarmUp: boolean) => (isWarmUp ? ms : Math.max(ms, WINDOW_MS_MIN));
	await eachRoundOverDirect(
		world,
		gateways,
		(gateway, ms, isWarmUp) => measure(world, gateway, "stream", STREAMS, longer(ms, isWarmUp)),
		({ name }, result, base) => {
			figures.add("stream", "CPU per event", "µs", name, result.cpu / result.events);
			for (const [label, share] of SHARES) {
				const delay = addedMicros(result.delaysMs, base.delaysMs, share);
				figures.add("stream", `added delay of an event, ${label}`, "µs", name, delay);
			}
			figures.add("stream", "added gap between events, p99", "µs", name, addedMicros(result.gapsMs, base.gapsMs, 0.99));
		},
	);
	await eachRound(
		world,
		gateways,
		(gateway, ms, isWarmUp) => measure(world, gateway, "burst", 32, longer(ms, isWarmUp)),
		(gateway, { cpu, postgresCpu, streams }) => {
			const add = (row: string, micros: number) =>
				figures.add("stream", "CPU per streamed request", "µs", row, micros / streams);
			add(gateway.name, cpu);
			if (gateway === world.product) add("Postgres for tollgate", postgresCpu);
		},
	);
}

/** Measures one stream at a time: the delay of its first event compared with a direct request. */
export async function measureFirstToken(world: World, figures: Figures): Promise<void> {
	const first = (gateway: Gateway, durationMs: number, isWarmUp: boolean) => {
		world.postgres.standBack();
		return measure(world, gateway, "burst", isWarmUp ? WARM_UP_STREAMS : 1, durationMs);
	};
	await eachRoundOverDirect(world, streamGateways(world), first, ({ name }, { firstMs }, base) => {
		for (const [label, share] of SHARES)
			figures.add(
				"first",
				`added time to first token, ${label}`,
				"µs",
				name,
				addedMicros(firstMs, base.firstMs, share),
			);
	});
}

const CONTENT = '"content":"';

interface OpenStream {
	sentAtMs: number;
	lastAtMs: number;
	events: number;
	sawUsage: boolean;
	sawEnd: boolean;
	/** The start of an event that has not arrived completely. */
	carry: string;
}

async function runStreams(options: LoadOptions) {
	const firstMs: number[] = [];
	const delaysMs: number[] = [];
	const gapsMs: number[] = [];
	const open: OpenStream[] = [];
	let events = 0;

	function take(stream: OpenStream, bytes: Buffer): void {
		// Time by the same clock as the model server's timestamps.
		const atMs = nowMs();
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

	const { requests, failures, firstFailure } = await runLoad({
		...options,
		sending(index) {
			open[index] = { sentAtMs: nowMs(), lastAtMs: 0, events: 0, sawUsage: false, sawEnd: false, carry: "" };
		},
		body: (index, bytes) => take(open[index] as OpenStream, bytes),
		problem(index) {
			const stream = open[index] as OpenStream;
			events += stream.events;
			if (stream.events !== STREAM_EVENTS) return `${stream.events} events`;
			return stream.sawUsage && stream.sawEnd ? undefined : "no usage or no end";
		},
	});
	return {
		streams: requests,
		/** Number of events with text, without events of role, usage and end. */
		events,
		failures,
		firstFailure,
		/** Time from the request to the first event. */
		firstMs: Float64Array.from(firstMs),
		/** Times from the sending of an event at the model server to its arrival here. */
		delaysMs: Float64Array.from(delaysMs),
		/** Times between two events of a stream that arrived in separate reads. */
		gapsMs: Float64Array.from(gapsMs),
	};
}
