/** Key under which a body keeps its integers beyond 2^53 as text, by name. The body's own members are rounded. */
export const EXACT_NUMBERS = Symbol("exact numbers");
export type WithExactNumbers = { [EXACT_NUMBERS]?: Readonly<Record<string, unknown>> };
