import type { Clock } from "../base/clock.ts";

export interface ProcessMemory {
	/** Of this process, bytes; undefined where it cannot be read. */
	resident(): number | undefined;
	/** Collects all of the heap, at once. */
	collect(): void;
}

export interface MemoryReturnDeps extends ProcessMemory {
	readonly clock: Clock;
	/** Requests and streams that are open. */
	open(): number;
}

/** Of its memory: a process that has more than this is helped to collect. A small container's gateway has it nearly at rest. */
const NEAR_SHARE = 1 / 3;

const TICK_MS = 1_000;
/** As long as nothing was open it is quiet. */
const QUIET_TICKS = 2;
/** Below that much growth since the last time a collection is not worth its pause. */
const GROWN_BYTES_MIN = 32 * 1024 * 1024;

/**
 * Gives memory back when nobody waits for an answer. Left alone the runtime would keep it: it takes each stream of an
 * upstream for 256 KB, so after some thousand of them it sees no need to collect for the next gigabyte. To collect all of
 * it takes a fifth of a second, which is a pause for everybody; so it is done in a quiet moment, or left to the collector
 * where there is none.
 */
export function startMemoryReturn({ clock, open, resident, collect }: MemoryReturnDeps): { stop(): void } {
	let quietTicks = 0;
	/** After the last collection; at first what the process began with. */
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

/** Collects where much of `memoryBytes` is in use: it stops streams for some 20 ms, for nothing where there is memory for what is collected late. */
export function collectNear({ resident, collect }: ProcessMemory, memoryBytes: number): () => void {
	return () => {
		if ((resident() ?? memoryBytes) > memoryBytes * NEAR_SHARE) collect();
	};
}
