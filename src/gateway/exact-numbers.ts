/** A body's own numbers beyond 2^53, by name, to be sent as written; the body has them rounded, for its checks. */
export const EXACT_NUMBERS = Symbol("exact numbers");
export type WithExactNumbers = { [EXACT_NUMBERS]?: Readonly<Record<string, unknown>> };
