/** Times by the million in constant memory: each is known to 1 %. */
const STEP = Math.log(1.01);
/** From a microsecond to some hours. */
const BUCKETS = 2_400;

export interface Histogram {
	/** Of a negative time, as two clocks may give, a microsecond is kept. */
	add(ms: number): void;
	count(): number;
	/** Microseconds below which the `share` (0 to 1) of all lie; NaN of none. */
	percentileMicros(share: number): number;
}

export function createHistogram(): Histogram {
	const buckets = new Uint32Array(BUCKETS);
	let count = 0;
	return {
		add(ms) {
			count += 1;
			const bucket = Math.round(Math.log(Math.max(1, ms * 1000)) / STEP);
			const index = Math.min(BUCKETS - 1, bucket);
			buckets[index] = (buckets[index] as number) + 1;
		},
		count: () => count,
		percentileMicros(share) {
			let left = Math.floor(count * share);
			for (let index = 0; index < BUCKETS; index++) {
				left -= buckets[index] as number;
				if (left < 0) return Math.exp(index * STEP);
			}
			return Number.NaN;
		},
	};
}
