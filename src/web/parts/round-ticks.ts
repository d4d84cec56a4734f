const TICKS = 4;

/** Returns at most seven ticks from 0 that cover all values. Their distance is 1, 2 or 5 times a power of ten. */
export function roundTicks(values: readonly number[]): number[] {
	const [least, most] = [Math.min(0, ...values), Math.max(0, ...values)];
	if (least === most) return [0];
	const wanted = (most - least) / TICKS;
	const power = 10 ** Math.floor(Math.log10(wanted));
	const step = ([1, 2, 5, 10].find((times) => times * power >= wanted) ?? 10) * power;
	const [first, last] = [Math.floor(least / step), Math.ceil(most / step)];
	// Rounds to the step's decimals, because 3 × 0.1 is not exactly 0.3.
	return Array.from({ length: last - first + 1 }, (_, at) => Number(((first + at) * step).toPrecision(12)));
}
