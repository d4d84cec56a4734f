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
	readonly young: readonly Collection[];
	readonly whole: readonly Collection[];
	/** Allocated when a collection was asked for because of it: what the runtime counts outside of its heap too. */
	readonly allocatedBytes: number;
}

/** Milliseconds. One is done in several stops, between which the program runs on beside the marking. */
export interface Collection {
	readonly longestStopMs: number;
	/** Of all its stops. */
	readonly stoppedMs: number;
}

export const LOG_GC = { BUN_JSC_logGC: "1" };
const CONNECTIONS = 32;
const REQUESTED = /bytes allocated this cycle: (\d+) exceed/;
const STARTED = /START .*?=> (Eden|Full)Collection/;
const STOPPED = / p=([\d.]+)ms/;

/** Reads what the runtime writes under `BUN_JSC_logGC=1`: a line for each stop, of which the first begins and the last ends a collection. */
export function collectionsOf(log: string): Collections {
	const found = { Eden: [] as Collection[], Full: [] as Collection[] };
	let kind: keyof typeof found | undefined;
	let stopsMs: number[] = [];
	let allocatedBytes = 0;
	/** It may be asked for again and again until it begins. */
	let askedAtBytes = 0;
	for (const line of log.split("\n")) {
		askedAtBytes = Number(REQUESTED.exec(line)?.[1] ?? askedAtBytes);
		const started = STARTED.exec(line)?.[1] as keyof typeof found | undefined;
		if (started) {
			[kind, stopsMs] = [started, []];
			allocatedBytes += askedAtBytes;
			askedAtBytes = 0;
		}
		const stopMs = STOPPED.exec(line)?.[1];
		if (kind === undefined || stopMs === undefined) continue;
		stopsMs.push(Number(stopMs));
		if (!line.endsWith("END]")) continue;
		found[kind].push({ longestStopMs: Math.max(...stopsMs), stoppedMs: stopsMs.reduce((sum, ms) => sum + ms, 0) });
		kind = undefined;
	}
	return { young: found.Eden, whole: found.Full, allocatedBytes };
}

export const longestStopsMs = (some: readonly Collection[]) => Float64Array.from(some, (one) => one.longestStopMs);

/** One for so many bytes that are allocated: else a timer of the runtime begins most of them, and does not say what they are for. */
const OFTEN = { ...LOG_GC, BUN_JSC_gcMaxHeapSize: String(12 * 1024 * 1024) };

type Add = (figures: Figures, row: string, found: Collections, requests: number) => void;

export async function collections(world: World, figures: Figures): Promise<void> {
	await collectionsUnder(world, figures, { name: "collections", env: LOG_GC, add: addStops });
	await collectionsUnder(world, figures, { name: "garbage", env: OFTEN, add: addGarbage });
}

async function collectionsUnder(
	world: World,
	figures: Figures,
	{ name, env, add }: { name: string; env: Readonly<Record<string, string>>; add: Add },
): Promise<void> {
	const own = await world.isolated(name, { env });
	const bareLog = join(world.folder, `bare-${name}.log`);
	const bare = await startBare(world.upstreamPort, own.secrets, false, { env, log: bareLog });
	const logs = new Map<Gateway, string>([
		[bare, bareLog],
		[own.gateway, join(world.folder, name, "service.log")],
	]);
	const floorLog = join(world.folder, `floor-${name}.log`);
	const floor = await world.startFloor?.(name, { env, log: floorLog });
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

function addGarbage(figures: Figures, row: string, { allocatedBytes }: Collections, requests: number): void {
	figures.add("collections", "garbage a request", "KB", row, allocatedBytes / requests / 1024);
}

function addStops(figures: Figures, row: string, { young, whole }: Collections, requests: number): void {
	const stopsMs = longestStopsMs(young);
	const stoppedMs = Float64Array.from(young, (one) => one.stoppedMs);
	figures.add("collections", "young collection, longest stop, median", "ms", row, percentile(stopsMs, 0.5));
	figures.add("collections", "young collection, longest stop, p99", "ms", row, percentile(stopsMs, 0.99));
	figures.add("collections", "young collection, all its stops, median", "ms", row, percentile(stoppedMs, 0.5));
	figures.add("collections", "young collections per 1,000 requests", "", row, (1000 * young.length) / requests);
	figures.add("collections", "whole collections per 1,000 requests", "", row, (1000 * whole.length) / requests);
}
