/**
 * Property of a parsed body with the exact text of its integers beyond 2^53, by field name. The body's own fields have
 * rounded values.
 */
export const EXACT_NUMBERS = Symbol("exact numbers");
export type WithExactNumbers = { [EXACT_NUMBERS]?: Readonly<Record<string, unknown>> };
