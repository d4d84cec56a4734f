/** Throughput of one and of two workers on one port, not pinned: the load runs on the same cores. */
import type { Figures } from "./figures.ts";
import { runLoad } from "./load.ts";
import { cpuMicros } from "./process-usage.ts";
import { chatBody, SMALL_PROMPT_BYTES } from "./prompts.ts";
import { chatRequestBytes } from "./raw-connection.ts";
import type { World } from "./world.ts";

const WORKERS = [1, 2];
const CONNECTIONS = 64;

export async function workers(world: World, figures: Figures): Promise<void> {
	const { mode } = world;
	const body = chatBody("plain", SMALL_PROMPT_BYTES);
	const running = [];
	for (const count of WORKERS) running.push(await world.isolated(`workers${count}`, { workers: count, pinned: false }));
	for (let round = 0; round <= mode.rounds; round++) {
		for (const [index, { gateway, secrets }] of running.entries()) {
			const bytes = secrets.map((secret) => chatRequestBytes(gateway, secret, body));
			let cpu = 0;
			const load = {
				port: gateway.port,
				connections: CONNECTIONS,
				request: (connection: number) => bytes[connection % bytes.length] as Uint8Array,
				durationMs: round === 0 ? mode.warmUpMs : mode.windowMs,
				begin: () => {
					cpu = cpuMicros(gateway.pids());
				},
			};
			const result = await world.charged(gateway, () => runLoad(load));
			if (round === 0) continue;
			const row = `${WORKERS[index]} worker${WORKERS[index] === 1 ? "" : "s"}`;
			figures.add("workers", "requests/s", "1/s", row, (1000 * result.requests) / result.elapsedMs);
			figures.add("workers", "CPU per request", "µs", row, (cpuMicros(gateway.pids()) - cpu) / result.requests);
		}
	}
	for (const { stop } of running) await stop();
}
