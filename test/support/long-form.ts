/**
 * True for full-length runs (`bun run test:long`) with every combination and large numbers. In the short form each
 * value is used once.
 */
export const LONG = Bun.env.LONG === "1";
