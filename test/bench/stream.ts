/** Streamed answers: CPU time of an event and of a short stream, and the time that a gateway adds. */

import { STAMP_DIGITS, STREAM_EVENTS } from "./fast-upstream.ts";
import type { Figures } from "./figures.ts";
import { directGateway, type Gateway } from "./gateways.ts";
import { type LoadOptions, runLoad } from "./load.ts";
import { cpuMicros } from "./process-usage.ts";
import { streamBody } from "./prompts.ts";
import { sharedMs } from "./shared-clock.ts";
import { percentile } from "./statistics.ts";
import type { World } from "./world.ts";

const STREAMS = 64;
const WINDOW_MS_MIN = 1_500;
/** Enough streams for the runtime to compile before single streams are timed: its compilers use the gateway's core. */
const WARM_UP_STREAMS = 32;

async function measure(world: World, gateway: Gateway, model: string, streams: number, durationMs: number) {
	const request = world.requests(gateway, streamBody(model));
	let cpu = 0;
	let postgresCpu = 0;
	const begin = () => {
		cpu = cpuMicros(gateway.pids());
		postgresCpu = cpuMicros(world.postgres.pids());
	};
	const result = await world.charged(gateway, () =>
		runStreams({ port: gateway.port, connections: streams, request, durationMs, begin }),
	);
	cpu = cpuMicros(gateway.pids()) - cpu;
	postgresCpu = cpuMicros(world.postgres.pids()) - postgresCpu;
	return { ...result, cpu, postgresCpu };
}

function streamGateways({ gateways, product, readingFloor }: World): readonly Gateway[] {
	const others = gateways.filter((gateway) => gateway !== product);
	return [...others, readingFloor, product];
}

/** Measures 64 concurrent streams of 100 events each, 5 ms apart, and the same events without pauses. */
export async function measureStreams(world: World, figures: Figures): Promise<void> {
	const { mode, product } = world;
	const gateways = streamGateways(world);
	const direct = directGateway(world.upstreamPort);
	for (let round = 0; round <= mode.rounds; round++) {
		// Streams leave the core half idle, so a short window would have too few clock ticks of CPU time.
		const durationMs = round === 0 ? mode.warmUpMs : Math.max(mode.windowMs, WINDOW_MS_MIN);
		let base: Awaited<ReturnType<typeof runStreams>> | undefined;
		for (const gateway of [direct, ...gateways]) {
			const result = await measure(world, gateway, "stream", STREAMS, durationMs);
			if (gateway === direct) base = result;
			if (round === 0 || gateway === direct || base === undefined) continue;
			figures.add("stream", "CPU per event", "µs", gateway.name, result.cpu / result.events);
			for (const [label, share] of [
				["p50", 0.5],
				["p99", 0.99],
			] as const) {
				const delay = percentile(result.delaysMs, share) - percentile(base.delaysMs, share);
				const gap = percentile(result.gapsMs, share) - percentile(base.gapsMs, share);
				figures.add("stream", `added delay of an event, ${label}`, "µs", gateway.name, delay * 1000);
				if (label === "p99")
					figures.add("stream", `added gap between events, ${label}`, "µs", gateway.name, gap * 1000);
			}
		}
		for (const gateway of gateways) {
			const result = await measure(world, gateway, "burst", 32, durationMs);
			if (round === 0) continue;
			figures.add("stream", "CPU per streamed request", "µs", gateway.name, result.cpu / result.streams);
			if (gateway === product)
				figures.add(
					"stream",
					"CPU per streamed request",
					"µs",
					"Postgres beside it",
					result.postgresCpu / result.streams,
				);
		}
	}
}

/** Measures one stream at a time: the delay of its first event compared with a direct request. */
export async function measureFirstToken(world: World, figures: Figures): Promise<void> {
	const { mode } = world;
	const gateways = streamGateways(world);
	const direct = directGateway(world.upstreamPort);
	for (let round = 0; round <= mode.rounds; round++) {
		let base: Float64Array | undefined;
		for (const gateway of [direct, ...gateways]) {
			world.postgres.standBack();
			const [streams, durationMs] = round === 0 ? [WARM_UP_STREAMS, mode.warmUpMs] : [1, mode.windowMs];
			const { firstMs } = await measure(world, gateway, "burst", streams, durationMs);
			if (gateway === direct) base = firstMs;
			if (round === 0 || gateway === direct || base === undefined) continue;
			for (const [label, share] of [
				["p50", 0.5],
				["p99", 0.99],
			] as const) {
				const added = percentile(firstMs, share) - percentile(base, share);
				figures.add("first", `added time to first token, ${label}`, "µs", gateway.name, added * 1000);
			}
		}
	}
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

	const { requests, failures, firstFailure } = await runLoad({
		...options,
		sending(index) {
			open[index] = { sentAtMs: sharedMs(), lastAtMs: 0, events: 0, sawUsage: false, sawEnd: false, carry: "" };
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
