/** Time that a gateway adds to an unstreamed answer, compared with requests directly to the model server. */
import type { Figures } from "./figures.ts";
import { directGateway } from "./gateways.ts";
import { runLoad } from "./load.ts";
import { chatBody, SMALL_PROMPT_BYTES } from "./prompts.ts";
import { percentile } from "./statistics.ts";
import type { World } from "./world.ts";

const SHARES = [
	["p50", 0.5],
	["p99", 0.99],
	["p99.9", 0.999],
] as const;

export async function measureLatency(world: World, figures: Figures): Promise<void> {
	const { mode } = world;
	const body = chatBody("plain", SMALL_PROMPT_BYTES);
	const direct = directGateway(world.upstreamPort);
	// Single requests are measured last, because the runtime's compilers use the gateway's core before.
	for (const connections of [32, 1]) {
		for (let round = 0; round <= mode.rounds; round++) {
			let base: Float64Array | undefined;
			for (const gateway of [direct, ...world.gateways]) {
				const request = world.requests(gateway, body);
				const durationMs = round === 0 ? mode.warmUpMs : mode.windowMs;
				world.postgres.standBack();
				const load = { port: gateway.port, connections, request, durationMs };
				const { latenciesMs } = await world.charged(gateway, () => runLoad(load));
				if (gateway === direct) base = latenciesMs;
				if (round === 0 || gateway === direct || base === undefined) continue;
				for (const [label, share] of SHARES) {
					const added = percentile(latenciesMs, share) - percentile(base, share);
					figures.add("latency", `added ${label} at concurrency ${connections}`, "µs", gateway.name, added * 1000);
				}
			}
		}
	}
}
