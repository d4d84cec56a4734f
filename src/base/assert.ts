/** Throws AssertionError, which indicates a bug. A user or another machine can cause only `Fault`s. */
export function assert(condition: unknown, message: string): asserts condition {
	if (!condition) throw new AssertionError(message);
}

export class AssertionError extends Error {
	override readonly name = "AssertionError" as const;
}
