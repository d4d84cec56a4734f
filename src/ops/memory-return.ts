import type { Clock } from "../base/clock.ts";

export interface ProcessMemory {
	/** Resident bytes of this process; undefined if unreadable. */
	resident(): number | undefined;
	/** Runs a full garbage collection. */
	collect(): void;
}

export interface MemoryReturnDeps extends ProcessMemory {
	readonly clock: Clock;
	/** Open requests and streams. */
	open(): number;
}

/**
 * Share of its memory above which a process is helped to collect. A small container's gateway is close to it at rest.
 */
const NEAR_SHARE = 1 / 3;

const TICK_MS = 1_000;
/** The service is quiet after this many ticks without an open request. */
const QUIET_TICKS = 2;
/** With less growth since the last collection, another one is not worth its pause. */
const GROWN_BYTES_MIN = 32 * 1024 * 1024;

/**
 * Returns memory to the system while no request is open: the runtime counts each upstream stream as 256 KB, so after
 * some thousand it would not collect for the next gigabyte. A full collection pauses everything for about 0.2 s, so it
 * runs only in quiet moments.
 */
export function startMemoryReturn({ clock, open, resident, collect }: MemoryReturnDeps): { stop(): void } {
	let quietTicks = 0;
	/** Resident bytes after the last collection; at first those at the start. */
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

/** Collects only if much of `memoryBytes` is in use: pausing streams for about 20 ms is wasted while memory is free. */
export function collectNear({ resident, collect }: ProcessMemory, memoryBytes: number): () => void {
	return () => {
		if ((resident() ?? memoryBytes) > memoryBytes * NEAR_SHARE) collect();
	};
}
