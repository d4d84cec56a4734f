/** The ladder of floors: processor time and garbage of a request, one part of its way after the other. */
import { join } from "node:path";
import { collectionsOf, LOG_GC, longestStopsMs } from "./collections.ts";
import type { Figures } from "./figures.ts";
import { FLOOR_STEPS } from "./floor.ts";
import type { Gateway } from "./gateways.ts";
import { startPortPrinter } from "./gateways.ts";
import { runLoad } from "./load.ts";
import { onGatewayCore } from "./machine.ts";
import { cpuMicros } from "./process-usage.ts";
import { chatBody, SMALL_PROMPT_BYTES } from "./prompts.ts";
import { chatRequestBytes } from "./raw-connection.ts";
import { percentile } from "./statistics.ts";
import type { World } from "./world.ts";

const PROMPTS = [
	{ label: "small prompt", bytes: SMALL_PROMPT_BYTES, connections: 32 },
	{ label: "1 MB prompt", bytes: 1_000_000, connections: 8 },
] as const;

interface Rung {
	readonly gateway: Gateway;
	readonly row: string;
	readonly log: string;
}

export async function floors(world: World, figures: Figures): Promise<void> {
	const own = await world.isolated("floors", { env: LOG_GC });
	const rungs: Rung[] = [];
	try {
		for (const [steps, row] of FLOOR_STEPS.entries()) rungs.push(await startRung(world, steps, row));
		const log = join(world.folder, "floors", "service.log");
		for (const prompt of PROMPTS) {
			for (let round = 0; round <= world.mode.rounds; round++) {
				for (const rung of [...rungs, { gateway: own.gateway, row: "tollgate", log }])
					await measure(world, figures, rung, own.secrets, prompt, round);
			}
		}
	} finally {
		for (const { gateway } of rungs) await gateway.stop();
	}
	await own.stop();
}

async function startRung(world: World, steps: number, row: string): Promise<Rung> {
	const log = join(world.folder, `floor-${steps}.log`);
	const settings = {
		STEPS: String(steps),
		UPSTREAM: `http://127.0.0.1:${world.upstreamPort}/v1`,
		JOURNAL_FILE: join(world.folder, `floor-${steps}.journal`),
		NODE_ENV: "production",
		...LOG_GC,
	};
	const argv = onGatewayCore([process.execPath, join(import.meta.dir, "floor.ts")]);
	return { gateway: await startPortPrinter(row, argv, settings, log), row, log };
}

async function measure(
	world: World,
	figures: Figures,
	{ gateway, row, log }: Rung,
	secrets: readonly string[],
	{ label, bytes, connections }: (typeof PROMPTS)[number],
	round: number,
): Promise<void> {
	const body = chatBody("plain", bytes);
	const all = secrets.map((secret) => chatRequestBytes(gateway, secret, body));
	const before = { micros: 0, log: 0 };
	const load = {
		port: gateway.port,
		connections,
		request: (connection: number) => all[connection % all.length] as Uint8Array,
		durationMs: round === 0 ? world.mode.warmUpMs / 2 : world.mode.windowMs,
		begin() {
			before.micros = cpuMicros(gateway.pids());
			before.log = Bun.file(log).size;
		},
	};
	const { requests } = await world.charged(gateway, () => runLoad(load));
	if (round === 0) return;
	const micros = cpuMicros(gateway.pids()) - before.micros;
	const { allocatedBytes, young } = collectionsOf(await Bun.file(log).slice(before.log).text());
	figures.add("floors", `CPU, ${label}`, "µs", row, micros / requests);
	if (label !== "small prompt") return;
	figures.add("floors", "garbage", "KB", row, allocatedBytes / requests / 1024);
	// A short window of a step that makes little may see no collection.
	if (young.length > 0) {
		const stopMs = percentile(longestStopsMs(young), 0.5);
		figures.add("floors", "young collection, longest stop, median", "ms", row, stopMs);
	}
}
