import type { Clock } from "../../base/clock.ts";
import { SlotPool } from "../../base/slot-pool.ts";

export interface OpenStream {
	/** Called once a second: ends a stalled stream whose place is needed, and writes a comment after silence. */
	tick(nowMs: number): void;
	/** Ends the stream with an error after the output delivered so far; called when the process stops. */
	shutDown(): void;
	slot: number;
}

export type OpenStreams = ReturnType<typeof createOpenStreams>;

const TICK_MS = 1_000;

/** All open streams: calls their `tick` by one timer, and ends them when the process stops. */
export function createOpenStreams(deps: { clock: Clock }) {
	const streams = new SlotPool<OpenStream>();
	let isShut = false;
	let cancel = deps.clock.after(TICK_MS, tick);

	function tick(): void {
		cancel = deps.clock.after(TICK_MS, tick);
		const nowMs = deps.clock.monotonicMs();
		for (const stream of [...streams]) stream.tick(nowMs);
	}

	return {
		/** Adds a stream. After `shutDown` it ends the stream immediately. */
		add(stream: OpenStream) {
			stream.slot = streams.take(stream);
			if (isShut) stream.shutDown();
		},
		delete: (stream: OpenStream) => void streams.release(stream.slot, stream),
		size: (): number => streams.size,
		shutDown() {
			isShut = true;
			for (const stream of [...streams]) stream.shutDown();
		},
		stop: () => cancel(),
	};
}
