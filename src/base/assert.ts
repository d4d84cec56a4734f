/** Throws on a programmer's error. A condition that a user or another machine can cause is a `Fault` instead. */
export function assert(condition: unknown, message: string): asserts condition {
	if (!condition) throw new AssertionError(message);
}

export class AssertionError extends Error {
	override readonly name = "AssertionError" as const;
}
