/** Streamed answers: processor time of an event and of a short stream, and the time that a gateway adds. */
import type { Figures } from "./figures.ts";
import type { Gateway } from "./gateways.ts";
import { directGateway } from "./gateways.ts";
import { cpuMicros } from "./process-usage.ts";
import { streamBody } from "./prompts.ts";
import { percentile } from "./statistics.ts";
import type { StreamResult } from "./stream-client.ts";
import { runStreams } from "./stream-client.ts";
import type { World } from "./world.ts";

const STREAMS = 64;
const WINDOW_MS_MIN = 1_500;
/** Enough for the runtime to compile before single streams are timed, since its compilers run on the gateway's core. */
const WARM_UP_STREAMS = 32;

async function measure(
	world: World,
	gateway: Gateway,
	model: string,
	streams: number,
	durationMs: number,
): Promise<StreamResult & { cpu: number; postgresCpu: number }> {
	const request = world.requests(gateway, streamBody(model));
	let cpu = 0;
	let postgresCpu = 0;
	const begin = () => {
		cpu = cpuMicros(gateway.pids());
		postgresCpu = cpuMicros(world.postgres.pids());
	};
	const result = await world.charged(gateway, () =>
		runStreams({ port: gateway.port, streams, request, durationMs, begin }),
	);
	cpu = cpuMicros(gateway.pids()) - cpu;
	postgresCpu = cpuMicros(world.postgres.pids()) - postgresCpu;
	return { ...result, cpu, postgresCpu };
}

function streamGateways({ gateways, product, readingFloor }: World): readonly Gateway[] {
	const others = gateways.filter((gateway) => gateway !== product);
	return [...others, readingFloor, product];
}

/** 64 streams at once, 100 events each, 5 ms apart; and the same events without pauses. */
export async function stream(world: World, figures: Figures): Promise<void> {
	const { mode, product } = world;
	const gateways = streamGateways(world);
	const direct = directGateway(world.upstreamPort);
	for (let round = 0; round <= mode.rounds; round++) {
		// Streams leave the core half idle, so a short window would have few ticks of its clock.
		const durationMs = round === 0 ? mode.warmUpMs : Math.max(mode.windowMs, WINDOW_MS_MIN);
		let base: StreamResult | undefined;
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

/** One stream at a time: the delay of its first event against a direct request. */
export async function first(world: World, figures: Figures): Promise<void> {
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
