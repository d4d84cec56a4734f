/** Throws AssertionError, which means a bug. `Fault` is for what a user or another machine can cause. */
export function assert(condition: unknown, message: string): asserts condition {
	if (!condition) throw new AssertionError(message);
}

export class AssertionError extends Error {
	override readonly name = "AssertionError" as const;
}
