/**
 * Batches of settlements that Postgres acknowledged lately, to be sent again where another server took over from it. As
 * bytes outside of the heap, one piece a batch: the collector would walk past twenty thousand texts again and again.
 */
export interface KeptBatches {
	/** `json`: an array of `settlements` SettledEvents. Forgets those that are too old or too many. */
	add(json: string, settlements: number, nowMs: number): void;
	/** Those that are kept when it is asked, oldest first, each as it was added. */
	texts(): Generator<string>;
}

interface KeptBatch {
	readonly bytes: Uint8Array;
	readonly settlements: number;
	readonly atMs: number;
}

/** A standby is behind by less. */
const KEPT_MS = 30_000;
const SETTLEMENTS_MAX = 20_000;

const encoder = new TextEncoder();
const decoder = new TextDecoder();

export function createKeptBatches(): KeptBatches {
	const batches: KeptBatch[] = [];
	let all = 0;

	return {
		add(json, settlements, nowMs) {
			if (settlements === 0) return;
			batches.push({ bytes: encoder.encode(json), settlements, atMs: nowMs });
			all += settlements;
			let old = 0;
			for (const batch of batches) {
				if (all <= SETTLEMENTS_MAX && nowMs - batch.atMs <= KEPT_MS) break;
				all -= batch.settlements;
				old += 1;
			}
			if (old > 0) batches.splice(0, old);
		},
		*texts() {
			for (const { bytes } of [...batches]) yield decoder.decode(bytes);
		},
	};
}
