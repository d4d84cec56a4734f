import type { Clock } from "../../base/clock.ts";
import { SlotPool } from "../../base/slot-pool.ts";

/** A stream that is open towards a client. */
export interface OpenStream {
	/** Once a second: ends a stream that keeps a place from others, writes a comment if nothing was written for a while. */
	tick(nowMs: number): void;
	/** Ends it with what it has: the process stops. */
	shutDown(): void;
	/** Among the open ones; not the stream's to set. */
	slot: number;
}

/** All open streams: one timer serves them all, and a stop can end them. */
export interface OpenStreams {
	/** After `shutDown` it is shut down at once. */
	add(stream: OpenStream): void;
	delete(stream: OpenStream): void;
	size(): number;
	shutDown(): void;
	stop(): void;
}

const TICK_MS = 1_000;

export function createOpenStreams(deps: { clock: Clock }): OpenStreams {
	const streams = new SlotPool<OpenStream>();
	let isShut = false;
	let cancel = deps.clock.after(TICK_MS, tick);

	function tick(): void {
		cancel = deps.clock.after(TICK_MS, tick);
		const nowMs = deps.clock.monotonicMs();
		for (const stream of [...streams]) stream.tick(nowMs);
	}

	return {
		add(stream) {
			stream.slot = streams.take(stream);
			if (isShut) stream.shutDown();
		},
		delete: (stream) => void streams.release(stream.slot, stream),
		size: () => streams.size,
		shutDown() {
			isShut = true;
			for (const stream of [...streams]) stream.shutDown();
		},
		stop: () => cancel(),
	};
}
