export type Spread = ReturnType<typeof spreadOf>;

export function spreadOf(values: readonly number[]) {
	const sorted = [...values].sort((a, b) => a - b);
	const middle = sorted.length / 2;
	const median =
		sorted.length % 2 === 1
			? (sorted[Math.floor(middle)] as number)
			: ((sorted[middle - 1] as number) + (sorted[middle] as number)) / 2;
	return { median, min: sorted[0] as number, max: sorted.at(-1) as number, rounds: sorted.length };
}

/** The quantile `share` (0 to 1) of the values; NaN if there are none. Sorts `values` in place. */
export function percentile(values: Float64Array, share: number): number {
	if (values.length === 0) return Number.NaN;
	values.sort();
	return values[Math.min(values.length - 1, Math.floor(values.length * share))] as number;
}
