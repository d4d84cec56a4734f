/**
 * Milliseconds since 1970 with fractions, monotonic and equal in all processes of the machine; `process.hrtime` has
 * another origin in each process.
 */
export function sharedMs(): number {
	return performance.timeOrigin + performance.now();
}
