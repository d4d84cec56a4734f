/** Unstreamed answers: CPU time per request and requests per second, for three sizes of prompt. */
import type { Figures } from "./figures.ts";
import { runLoad } from "./load.ts";
import { cpuMicros } from "./process-usage.ts";
import { chatBody, SMALL_PROMPT_BYTES } from "./prompts.ts";
import type { World } from "./world.ts";

const PROMPTS = [
	{ label: "small prompt", bytes: SMALL_PROMPT_BYTES, connections: 32 },
	{ label: "100 KB prompt", bytes: 100_000, connections: 32 },
	{ label: "1 MB prompt", bytes: 1_000_000, connections: 8 },
] as const;

export async function measureUnstreamed(world: World, figures: Figures): Promise<void> {
	const { mode, postgres } = world;
	for (const { label, bytes, connections } of PROMPTS) {
		const body = chatBody("plain", bytes);
		for (let round = 0; round <= mode.rounds; round++) {
			for (const gateway of world.gateways) {
				const request = world.requests(gateway, body);
				// Round 0 is the warm-up.
				const durationMs = round === 0 ? mode.warmUpMs : mode.windowMs;
				let cpu = 0;
				let postgresCpu = 0;
				const begin = () => {
					cpu = cpuMicros(gateway.pids());
					postgresCpu = cpuMicros(postgres.pids());
				};
				const load = { port: gateway.port, connections, request, durationMs, begin };
				const result = await world.charged(gateway, () => runLoad(load));
				if (round === 0) continue;
				cpu = cpuMicros(gateway.pids()) - cpu;
				postgresCpu = cpuMicros(postgres.pids()) - postgresCpu;
				figures.add("plain", `CPU per request, ${label}`, "µs", gateway.name, cpu / result.requests);
				figures.add("plain", `requests/s, ${label}`, "1/s", gateway.name, (1000 * result.requests) / result.elapsedMs);
				figures.add("plain", `core used, ${label}`, "%", gateway.name, cpu / (10 * result.elapsedMs));
				if (gateway === world.product)
					figures.add("plain", `CPU per request, ${label}`, "µs", "Postgres beside it", postgresCpu / result.requests);
			}
		}
	}
}
