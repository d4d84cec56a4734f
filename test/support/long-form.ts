/**
 * True in the long run (`bun run test:long`), which tests every combination with large numbers. The short run uses each
 * value once.
 */
export const LONG = Bun.env.LONG === "1";
