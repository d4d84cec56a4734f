/** The collector at work under load: what it is called for, and how long it stops everything, from the runtime's own log. */
import { join } from "node:path";
import type { Figures } from "./figures.ts";
import type { Gateway } from "./gateways.ts";
import { startBare } from "./gateways.ts";
import { runLoad } from "./load.ts";
import { chatBody, SMALL_PROMPT_BYTES } from "./prompts.ts";
import { chatRequestBytes } from "./raw-connection.ts";
import { percentile } from "./statistics.ts";
import type { World } from "./world.ts";

export interface Collections {
	/** Pauses of young collections, milliseconds. */
	readonly youngMs: Float64Array;
	/** Of whole ones. */
	readonly fullMs: Float64Array;
	/** Allocated when a collection was asked for because of it: what the runtime counts outside of its heap too. */
	readonly allocatedBytes: number;
}

export const LOG_GC = { BUN_JSC_logGC: "1" };
const CONNECTIONS = 32;
const REQUESTED = /bytes allocated this cycle: (\d+) exceed/g;
const PAUSED = /=> (Eden|Full)Collection.*? p=([\d.]+)ms/g;

/** Reads what the runtime writes under `BUN_JSC_logGC=1`. */
export function collectionsOf(log: string): Collections {
	const pauses = [...log.matchAll(PAUSED)];
	const of = (kind: string) =>
		Float64Array.from(pauses.filter(([, found]) => found === kind).map(([, , ms]) => Number(ms)));
	let allocatedBytes = 0;
	for (const [, bytes] of log.matchAll(REQUESTED)) allocatedBytes += Number(bytes);
	return { youngMs: of("Eden"), fullMs: of("Full"), allocatedBytes };
}

export async function collections(world: World, figures: Figures): Promise<void> {
	const own = await world.isolated("collections", { env: LOG_GC });
	const bareLog = join(world.folder, "bare-collections.log");
	const bare = await startBare(world.upstreamPort, own.secrets, false, { env: LOG_GC, log: bareLog });
	const logs = new Map<Gateway, string>([
		[bare, bareLog],
		[own.gateway, join(world.folder, "collections", "service.log")],
	]);
	const floorLog = join(world.folder, "floor-collections.log");
	const floor = await world.startFloor?.("collections", { env: LOG_GC, log: floorLog });
	if (floor) logs.set(floor, floorLog);
	const body = chatBody("plain", SMALL_PROMPT_BYTES);
	try {
		for (let round = 0; round <= world.mode.rounds; round++) {
			for (const [gateway, log] of logs) {
				const secrets = gateway === floor ? world.secrets : own.secrets;
				const all = secrets.map((secret) => chatRequestBytes(gateway, secret, body));
				const request = (connection: number) => all[connection % all.length] as Uint8Array;
				// Twice the time: some dozens of collections are wanted.
				const durationMs = round === 0 ? world.mode.warmUpMs : 2 * world.mode.windowMs;
				const before = Bun.file(log).size;
				const load = { port: gateway.port, connections: CONNECTIONS, request, durationMs };
				const { requests } = await world.charged(gateway, () => runLoad(load));
				if (round > 0) add(figures, gateway.name, collectionsOf(await Bun.file(log).slice(before).text()), requests);
			}
		}
	} finally {
		await bare.stop();
		await floor?.stop();
	}
	await own.stop();
}

function add(figures: Figures, row: string, { youngMs, fullMs, allocatedBytes }: Collections, requests: number): void {
	figures.add("collections", "garbage a request", "KB", row, allocatedBytes / requests / 1024);
	figures.add("collections", "young collection, median", "ms", row, percentile(youngMs, 0.5));
	figures.add("collections", "young collection, p99", "ms", row, percentile(youngMs, 0.99));
	figures.add("collections", "young collections per 1,000 requests", "", row, (1000 * youngMs.length) / requests);
	figures.add("collections", "whole collections per 1,000 requests", "", row, (1000 * fullMs.length) / requests);
}
