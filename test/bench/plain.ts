/** Unstreamed answers: CPU time per request and requests per second, for three sizes of prompt. */
import type { Figures } from "./figures.ts";
import type { Gateway } from "./gateways.ts";
import { runLoad } from "./load.ts";
import { chatBody, SMALL_PROMPT_BYTES } from "./prompts.ts";
import { eachRound, timed } from "./rounds.ts";
import type { World } from "./world.ts";

const PROMPTS = [
	{ label: "small prompt", bytes: SMALL_PROMPT_BYTES, connections: 32 },
	{ label: "100 KB prompt", bytes: 100_000, connections: 32 },
	{ label: "1 MB prompt", bytes: 1_000_000, connections: 8 },
] as const;

export async function measureUnstreamed(world: World, figures: Figures): Promise<void> {
	for (const { label, bytes, connections } of PROMPTS) {
		const body = chatBody("plain", bytes);
		const measure = (gateway: Gateway, durationMs: number) =>
			timed(world, gateway, (begin) =>
				runLoad({ port: gateway.port, connections, request: world.requests(gateway, body), durationMs, begin }),
			);
		await eachRound(world, world.gateways, measure, (gateway, { requests, elapsedMs, cpu, postgresCpu }) => {
			figures.add("plain", `CPU per request, ${label}`, "µs", gateway.name, cpu / requests);
			figures.add("plain", `requests/s, ${label}`, "1/s", gateway.name, (1000 * requests) / elapsedMs);
			figures.add("plain", `core used, ${label}`, "%", gateway.name, cpu / (10 * elapsedMs));
			if (gateway === world.product)
				figures.add("plain", `CPU per request, ${label}`, "µs", "Postgres for tollgate", postgresCpu / requests);
		});
	}
}
