/** Key of a body's numbers beyond 2^53, by name, which are sent as written; the body itself has them rounded. */
export const EXACT_NUMBERS = Symbol("exact numbers");
export type WithExactNumbers = { [EXACT_NUMBERS]?: Readonly<Record<string, unknown>> };
