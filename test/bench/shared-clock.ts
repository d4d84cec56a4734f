/**
 * Milliseconds since 1970 with fractions, the same in all processes of the machine, and even: what `process.hrtime` gives
 * begins anew in each process.
 */
export function sharedMs(): number {
	return performance.timeOrigin + performance.now();
}
