/**
 * Counts the cost of a request in units that do not depend on the load of the machine: objects, bytes, system calls,
 * context switches.
 */
import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { Gateway } from "./gateways.ts";
import { openIdleStreams } from "./idle-streams.ts";
import type { LoadOptions, LoadResult } from "./load.ts";
import { runLoad } from "./load.ts";
import { sleepsOf, writeCallsOf } from "./process-usage.ts";

/** Average counts per request. */
export interface Counts {
	/** Number of dead objects that the garbage collector must find. */
	readonly objects: number;
	/** Bytes of the heap's blocks, including external memory. */
	readonly bytes: number;
	/** By the runtime's type names: closures are `Function`, their scopes `JSLexicalEnvironment`. */
	readonly byKind: Readonly<Record<string, number>>;
	/** System calls that write to a file or wake a thread. */
	readonly writes: number;
	/** Number of times that a thread went to sleep. */
	readonly sleeps: number;
	readonly load: LoadResult;
}

/** How to start a process whose objects are counted. */
export interface Counted {
	/** Arguments of the runtime, before the program. */
	readonly flags: readonly string[];
	readonly env: Readonly<Record<string, string>>;
	readonly reportPath: string;
}

interface HeapReport {
	readonly bytes: number;
	readonly objects: Readonly<Record<string, number>>;
}

const REPORT_DEADLINE_MS = 10_000;
/** Waits for work that follows a request, such as writing its batch to Postgres. */
const SETTLE_MS = 150;

/** The garbage collector is off in this process, so it can serve at most some ten thousand requests. */
export const counted = (folder: string, name: string) => reporting(folder, name, { BUN_JSC_useGC: "0" });

/** A process with a garbage collector, for `keptRun` and `openStreamCounts`. */
export const collected = (folder: string, name: string) => reporting(folder, name, { HEAP_COLLECTS: "young" });

function reporting(folder: string, name: string, how: Readonly<Record<string, string>>): Counted {
	const reportPath = join(folder, `${name}.heap`);
	return {
		flags: ["--preload", join(import.meta.dir, "heap-reporter.ts")],
		env: { ...how, HEAP_REPORT: reportPath },
		reportPath,
	};
}

/** Repeats a load with a young collection after each round. Returns the objects that are alive at the end, by kind. */
export async function keptRun(
	gateway: Pick<Gateway, "pids">,
	{ reportPath }: Counted,
	load: LoadOptions,
	times: number,
): Promise<Readonly<Record<string, number>>> {
	let kept: Readonly<Record<string, number>> = {};
	for (let nth = 0; nth < times; nth++) {
		await runLoad(load);
		await Bun.sleep(SETTLE_MS);
		kept = (await reportOf(gateway.pids()[0] as number, reportPath)).objects;
	}
	return kept;
}

/** Objects that a process retains per open stream. */
export type LiveCounts = Pick<Counts, "objects" | "bytes" | "byKind">;

/** Bytes that the runtime counts for each stream's first read; mostly memory that is never touched. */
const FIRST_PIECE_BYTES = 256 * 1024;

/** Opens `count` streams twice, each with one event and then silence; the second time without one-time objects. */
export async function openStreamCounts(
	{ pids, port }: Pick<Gateway, "pids" | "port">,
	{ reportPath }: Counted,
	streams: number,
	request: (stream: number) => Uint8Array,
	release: () => void,
): Promise<LiveCounts> {
	const pid = pids()[0] as number;
	const open = async () => {
		const opened = await openIdleStreams(port, streams, request);
		await Bun.sleep(SETTLE_MS);
		const report = await reportOf(pid, reportPath, "SIGPROF");
		release();
		await opened.ended();
		await Bun.sleep(SETTLE_MS);
		return report;
	};
	await open();
	const before = await reportOf(pid, reportPath, "SIGPROF");
	const after = await open();
	const held = increaseOf(before, after, streams);
	return { ...held, bytes: held.bytes - FIRST_PIECE_BYTES };
}

/** Runs a load and counts the work of the gateway's process. Warm the process up first. */
export async function countedRun(
	gateway: Pick<Gateway, "pids">,
	{ reportPath }: Counted,
	load: LoadOptions,
): Promise<Counts> {
	const pid = gateway.pids()[0] as number;
	const before = await reportOf(pid, reportPath);
	const writes = writeCallsOf(pid);
	const sleeps = sleepsOf(pid);
	const result = await runLoad(load);
	const wrote = writeCallsOf(pid) - writes;
	const slept = sleepsOf(pid) - sleeps;
	await Bun.sleep(SETTLE_MS);
	const after = await reportOf(pid, reportPath);
	const { requests } = result;
	return { ...increaseOf(before, after, requests), writes: wrote / requests, sleeps: slept / requests, load: result };
}

/** Objects and bytes that were added per unit of work. */
function increaseOf(before: HeapReport, after: HeapReport, units: number): LiveCounts {
	const added = Object.entries(after.objects).map(
		([kind, count]) => [kind, (count - (before.objects[kind] ?? 0)) / units] as const,
	);
	return {
		objects: added.reduce((sum, [, count]) => sum + count, 0),
		bytes: (after.bytes - before.bytes) / units,
		byKind: Object.fromEntries(added.filter(([, count]) => count >= 0.05).sort(([, a], [, b]) => b - a)),
	};
}

/** Counts of which each is a function of the count of the same name. */
export function mapCounts(
	{ byKind, load, ...sums }: Counts,
	change: (count: number, name: keyof typeof sums | undefined, kind: string) => number,
): Counts {
	const kinds = Object.entries(byKind).map(([kind, count]) => [kind, change(count, undefined, kind)] as const);
	const { objects, bytes, writes, sleeps } = sums;
	return {
		objects: change(objects, "objects", ""),
		bytes: change(bytes, "bytes", ""),
		writes: change(writes, "writes", ""),
		sleeps: change(sleeps, "sleeps", ""),
		byKind: Object.fromEntries(kinds),
		load,
	};
}

/** The lowest value of each count. */
export const leastOf = (windows: readonly Counts[]): Counts =>
	windows.reduce((least, counts) =>
		mapCounts(least, (count, name, kind) => Math.min(count, name ? counts[name] : (counts.byKind[kind] ?? 0))),
	);

async function reportOf(pid: number, path: string, signal: NodeJS.Signals = "SIGUSR2"): Promise<HeapReport> {
	rmSync(path, { force: true });
	process.kill(pid, signal);
	const giveUpAt = performance.now() + REPORT_DEADLINE_MS;
	while (!existsSync(path)) {
		if (performance.now() > giveUpAt) throw new Error("the process did not report its heap");
		await Bun.sleep(5);
	}
	return JSON.parse(readFileSync(path, "utf8")) as HeapReport;
}
