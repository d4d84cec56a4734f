/** Time that a gateway adds to an unstreamed answer, compared with requests directly to the model server. */
import type { Figures } from "./figures.ts";
import type { Gateway } from "./gateways.ts";
import { runLoad } from "./load.ts";
import { chatBody, SMALL_PROMPT_BYTES } from "./prompts.ts";
import { addedMicros, eachRoundOverDirect } from "./rounds.ts";
import type { World } from "./world.ts";

const SHARES = [
	["p50", 0.5],
	["p99", 0.99],
	["p99.9", 0.999],
] as const;

export async function measureLatency(world: World, figures: Figures): Promise<void> {
	const body = chatBody("plain", SMALL_PROMPT_BYTES);
	// Single requests are measured last, because the runtime's compilers use the gateway's core before.
	for (const connections of [32, 1]) {
		const measure = (gateway: Gateway, durationMs: number) => {
			world.postgres.standBack();
			const load = { port: gateway.port, connections, request: world.requests(gateway, body), durationMs };
			return world.charged(gateway, () => runLoad(load));
		};
		await eachRoundOverDirect(world, world.gateways, measure, (gateway, { latenciesMs }, base) => {
			for (const [label, share] of SHARES) {
				const added = addedMicros(latenciesMs, base.latenciesMs, share);
				figures.add("latency", `added ${label} at concurrency ${connections}`, "µs", gateway.name, added);
			}
		});
	}
}
