import type { Clock } from "../base/clock.ts";

export interface ProcessMemory {
	/** Resident memory of this process in bytes; undefined if it cannot be read. */
	resident(): number | undefined;
	/** Runs a full garbage collection. */
	collect(): void;
}

export interface MemoryReturnDeps extends ProcessMemory {
	readonly clock: Clock;
	/** Number of open requests and streams. */
	open(): number;
}

/** From this share of the memory on, collections are forced. A gateway in a small container is near it when idle. */
const NEAR_SHARE = 1 / 3;

const TICK_MS = 1_000;
/** After this many ticks without an open request the service counts as idle. */
const QUIET_TICKS = 2;
/** Minimum growth since the last collection that justifies the pause of another one. */
const GROWN_BYTES_MIN = 32 * 1024 * 1024;

/**
 * Forces garbage collections while no request is open. The runtime counts each stream of a model server as only 256 KB,
 * and would otherwise let memory grow by a gigabyte. A full collection pauses the process for about 0.2 s.
 */
export function startMemoryReturn({ clock, open, resident, collect }: MemoryReturnDeps): { stop(): void } {
	let quietTicks = 0;
	/** Resident bytes after the last collection; initially those at the start. */
	let before = resident();
	let cancel = clock.after(TICK_MS, tick);

	function tick(): void {
		cancel = clock.after(TICK_MS, tick);
		quietTicks = open() === 0 ? quietTicks + 1 : 0;
		if (quietTicks < QUIET_TICKS) return;
		const now = resident();
		before ??= now;
		if (now === undefined || before === undefined || now - before < GROWN_BYTES_MIN) return;
		collect();
		before = resident();
	}

	return { stop: () => cancel() };
}

/** Returns a function that collects only if much of `memoryBytes` is used: the pause delays streams by 20 ms. */
export function createThresholdCollector({ resident, collect }: ProcessMemory, memoryBytes: number): () => void {
	return () => {
		if ((resident() ?? memoryBytes) > memoryBytes * NEAR_SHARE) collect();
	};
}
