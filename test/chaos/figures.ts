/** Percentiles of durations in milliseconds, rounded to a tenth. */
export function percentilesOf(samples: readonly number[]): { p50: number; p90: number; p99: number; max: number } {
	if (samples.length === 0) throw new Error("there is nothing to sum up");
	const sorted = [...samples].sort((a, b) => a - b);
	const at = (share: number) => Math.round((sorted[Math.ceil(sorted.length * share) - 1] ?? 0) * 10) / 10;
	return { p50: at(0.5), p90: at(0.9), p99: at(0.99), max: at(1) };
}
