/** What a user waits at a given load: arrivals by the clock, at shares of what the product can serve, the same for all. */
import type { Figures } from "./figures.ts";
import type { Gateway } from "./gateways.ts";
import { directGateway } from "./gateways.ts";
import { runLoad } from "./load.ts";
import type { OpenLoadResult } from "./open-load.ts";
import { runOpenLoad } from "./open-load.ts";
import { cpuMicros } from "./process-usage.ts";
import { chatBody, SMALL_PROMPT_BYTES, streamBody } from "./prompts.ts";
import { percentile } from "./statistics.ts";
import { runStreams } from "./stream-client.ts";
import type { World } from "./world.ts";

const SHARES = [0.25, 0.5, 0.75, 0.9];
const PERCENTILES = [
	["p50", 0.5],
	["p90", 0.9],
	["p99", 0.99],
	["p99.9", 0.999],
] as const;
const COMPARED = new Set(["bare Bun", "nginx", "floor", "tollgate"]);
/** Streams take half a second, so that a window must hold some generations of them. */
const STREAMED_WINDOW_MS_MIN = 3_000;
const CAPACITY_STREAMS = 64;
/** A percentile that so few values lie above is chance. */
const ABOVE_MIN = 3;
/** With more than this the generator, and not the gateway, is what is measured. */
const LATE_P50_MS_MAX = 1;

interface Kind {
	readonly name: string;
	readonly body: string;
	readonly streamed: boolean;
	readonly connections: number;
	/** Requests a second with which the product's core is full. */
	capacity(world: World): Promise<number>;
}

const KINDS: readonly Kind[] = [
	{
		name: "plain",
		body: chatBody("plain", SMALL_PROMPT_BYTES),
		streamed: false,
		connections: 128,
		async capacity(world) {
			const { product, mode } = world;
			const request = world.requests(product, this.body);
			const load = { port: product.port, connections: 32, request, durationMs: mode.windowMs };
			const { requests, elapsedMs } = await world.charged(product, () => runLoad(load));
			return (1000 * requests) / elapsedMs;
		},
	},
	{
		name: "streamed",
		body: streamBody("stream"),
		streamed: true,
		connections: 768,
		async capacity(world) {
			const { product, mode } = world;
			const request = world.requests(product, this.body);
			let cpu = 0;
			const begin = () => {
				cpu = cpuMicros(product.pids());
			};
			const load = { port: product.port, streams: CAPACITY_STREAMS, request, durationMs: mode.windowMs, begin };
			const { streams } = await world.charged(product, () => runStreams(load));
			return (1e6 * streams) / (cpuMicros(product.pids()) - cpu);
		},
	},
];

export function openLoop(world: World, figures: Figures): Promise<void> {
	return measureKinds(world, figures, KINDS, SHARES);
}

/** Half of what the product serves, in whole answers: the figure that is a goal. */
export function halfLoad(world: World, figures: Figures): Promise<void> {
	return measureKinds(world, figures, KINDS.slice(0, 1), [0.5]);
}

async function measureKinds(
	world: World,
	figures: Figures,
	kinds: readonly Kind[],
	shares: readonly number[],
): Promise<void> {
	for (const kind of kinds) {
		// The first one warms up.
		await kind.capacity(world);
		const capacity = await kind.capacity(world);
		figures.add("open", `${kind.name}: requests/s at 100 %`, "1/s", "tollgate", capacity);
		for (const share of shares) {
			for (let round = 1; round <= world.mode.rounds; round++) {
				await measureRound(world, figures, kind, { share, perSecond: capacity * share, seed: round });
			}
		}
	}
}

interface Load {
	readonly share: number;
	readonly perSecond: number;
	readonly seed: number;
}

async function measureRound(world: World, figures: Figures, kind: Kind, load: Load): Promise<void> {
	const at = `${kind.name} at ${load.share * 100} %`;
	const gateways = world.gateways.filter(({ name }) => COMPARED.has(name));
	const base = new Map<string, number>();
	for (const gateway of [directGateway(world.upstreamPort), ...gateways]) {
		world.postgres.standBack();
		const result = await run(world, gateway, kind, load);
		const times = kind.streamed ? result.firstMs : result.latenciesMs;
		for (const [label, share] of PERCENTILES) {
			if (times.length * (1 - share) < ABOVE_MIN) continue;
			const micros = percentile(times, share) * 1000;
			const what = kind.streamed ? `first token ${label}` : label;
			figures.add("open", `${at}: ${what}`, "µs", gateway.name, micros);
			if (label !== "p99") continue;
			if (base.has(label)) {
				const added = micros - (base.get(label) as number);
				figures.add("open", `${at}: added ${what}`, "µs", gateway.name, added);
			} else base.set(label, micros);
		}
		const lateMs = percentile(result.lateMs, 0.5);
		figures.add("open", `${at}: sent late p50`, "µs", gateway.name, lateMs * 1000);
		figures.add("open", `${at}: generator's CPU`, "% of a core", gateway.name, generatorShare(result));
		world.checks.push({
			name: `${at}, ${gateway.name}: requests were sent when they were due`,
			ok: lateMs <= LATE_P50_MS_MAX,
			detail: `half of them ${lateMs.toFixed(2)} ms late or less`,
		});
	}
}

const generatorShare = ({ generatorMicros, elapsedMs }: OpenLoadResult) => generatorMicros / (10 * elapsedMs);

function run(world: World, gateway: Gateway, kind: Kind, { perSecond, seed }: Load): Promise<OpenLoadResult> {
	const { mode } = world;
	const durationMs = kind.streamed ? Math.max(mode.windowMs, STREAMED_WINDOW_MS_MIN) : mode.windowMs;
	const request = world.requests(gateway, kind.body);
	const { connections, streamed } = kind;
	const { port } = gateway;
	return world.charged(gateway, () =>
		runOpenLoad({ port, kind: "poisson", perSecond, durationMs, seed, connections, request, streamed }),
	);
}
