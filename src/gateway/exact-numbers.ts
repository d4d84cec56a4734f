/** Property of a parsed body: exact text of integers beyond 2^53, by field. The fields themselves are rounded. */
export const EXACT_NUMBERS = Symbol("exact numbers");
export type WithExactNumbers = { [EXACT_NUMBERS]?: Readonly<Record<string, unknown>> };
