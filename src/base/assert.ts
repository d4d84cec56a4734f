/** Stops on a programmer's error. What a user or another machine can cause is a `Fault`, never an assertion. */
export function assert(condition: unknown, message: string): asserts condition {
	if (!condition) throw new AssertionError(message);
}

export class AssertionError extends Error {
	override readonly name = "AssertionError" as const;
}

/** For the `default` of a switch over a closed union: the compiler proves that nothing arrives here. */
export function unreachable(value: never): never {
	throw new AssertionError(`unreachable value ${JSON.stringify(value)}`);
}
