/** Whether the gateway is better off as a batch process (`chrt -b 0`): switches, processor time and waits of a request. */
import { readdirSync, readFileSync } from "node:fs";
import type { Figures } from "./figures.ts";
import { runLoad } from "./load.ts";
import { cpuMicros } from "./process-usage.ts";
import { chatBody, SMALL_PROMPT_BYTES } from "./prompts.ts";
import { chatRequestBytes } from "./raw-connection.ts";
import { percentile } from "./statistics.ts";
import type { Isolated, World } from "./world.ts";

const CONNECTIONS = [1, 32];

export async function scheduling(world: World, figures: Figures): Promise<void> {
	if (!Bun.which("chrt")) return;
	const usual = await world.isolated("usual");
	const batch = await world.isolated("batch", { command: ["chrt", "-b", "0", ...world.command] });
	for (const connections of CONNECTIONS) {
		for (let round = 0; round <= world.mode.rounds; round++) {
			await measure(world, figures, usual, "tollgate", { connections, round });
			await measure(world, figures, batch, "tollgate, SCHED_BATCH", { connections, round });
		}
	}
	for (const { stop } of [usual, batch]) await stop();
}

async function measure(
	world: World,
	figures: Figures,
	{ gateway, secrets }: Isolated,
	row: string,
	{ connections, round }: { connections: number; round: number },
): Promise<void> {
	const all = secrets.map((secret) => chatRequestBytes(gateway, secret, chatBody("plain", SMALL_PROMPT_BYTES)));
	const before = { micros: 0, switches: 0 };
	const load = {
		port: gateway.port,
		connections,
		request: (connection: number) => all[connection % all.length] as Uint8Array,
		durationMs: round === 0 ? world.mode.warmUpMs : world.mode.windowMs,
		begin() {
			before.micros = cpuMicros(gateway.pids());
			before.switches = switchesOf(gateway.pids());
		},
	};
	const { requests, latenciesMs } = await world.charged(gateway, () => runLoad(load));
	if (round === 0) return;
	const add = (name: string, unit: string, value: number) =>
		figures.add("scheduling", `${name}, concurrency ${connections}`, unit, row, value);
	add("CPU per request", "µs", (cpuMicros(gateway.pids()) - before.micros) / requests);
	add("switches of threads per request", "", (switchesOf(gateway.pids()) - before.switches) / requests);
	add("p50", "µs", percentile(latenciesMs, 0.5) * 1000);
	add("p99", "µs", percentile(latenciesMs, 0.99) * 1000);
}

/** How often the processes' threads went to sleep or had to make way for another one. */
function switchesOf(pids: readonly number[]): number {
	let sum = 0;
	for (const pid of pids) {
		for (const thread of readdirSync(`/proc/${pid}/task`)) {
			const status = readFileSync(`/proc/${pid}/task/${thread}/status`, "utf8");
			for (const [, count] of status.matchAll(/^(?:non)?voluntary_ctxt_switches:\s+(\d+)/gm)) sum += Number(count);
		}
	}
	return sum;
}
