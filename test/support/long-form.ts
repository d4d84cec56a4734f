/**
 * True in the long form (`bun run test:long`), which tests every combination with large numbers. The short form uses each
 * value once.
 */
export const LONG = Bun.env.LONG === "1";
