/** A histogram that is cheap enough for every event: plain numbers, which are formatted only when metrics are read. */
export interface Histogram {
	/** Upper bounds of the buckets, in ascending order. */
	readonly bounds: readonly number[];
	/** Events per bucket, and as the last element those above the last bound. */
	readonly counts: readonly number[];
	readonly sum: number;
}

export interface CountedHistogram extends Histogram {
	observe(value: number): void;
}

/** Covers everything from a cached response to a model that reasons for minutes. */
const LATENCY_BOUNDS_MS = [5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000, 300_000];

export function createHistogram(bounds: readonly number[] = LATENCY_BOUNDS_MS): CountedHistogram {
	const counts = new Array<number>(bounds.length + 1).fill(0);
	const histogram = {
		bounds,
		counts,
		sum: 0,
		observe(value: number) {
			let at = 0;
			while (at < bounds.length && value > (bounds[at] as number)) at += 1;
			counts[at] = (counts[at] as number) + 1;
			histogram.sum += value;
		},
	};
	return histogram;
}
