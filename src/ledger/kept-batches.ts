import { SettledColumns } from "./settled-columns.ts";

interface KeptBatch {
	readonly bytes: Uint8Array;
	readonly settlements: number;
	readonly atMs: number;
}

/** A standby's lag is shorter. */
const KEPT_MS = 30_000;
const SETTLEMENTS_MAX = 20_000;

/**
 * Batches of settlements that Postgres acknowledged recently, kept for sending again after a failover. Stored as bytes
 * outside the heap, one piece per batch: otherwise the garbage collector would visit twenty thousand objects
 * repeatedly.
 */
export function createKeptBatches() {
	const kept: KeptBatch[] = [];
	let all = 0;

	return {
		/** Also drops batches that are too old or too many. */
		add(batch: SettledColumns, nowMs: number) {
			const settlements = batch.length;
			if (settlements === 0) return;
			kept.push({ bytes: batch.bytes(), settlements, atMs: nowMs });
			all += settlements;
			let old = 0;
			for (const one of kept) {
				if (all <= SETTLEMENTS_MAX && nowMs - one.atMs <= KEPT_MS) break;
				all -= one.settlements;
				old += 1;
			}
			if (old > 0) kept.splice(0, old);
		},
		/** Batches kept at the time of the call, oldest first, each as it was added. */
		*batches() {
			for (const { bytes } of [...kept]) yield SettledColumns.read(bytes);
		},
	};
}
