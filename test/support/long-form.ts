/**
 * True where tests run at full length (`bun run test:long`): every case of a product, and the numbers that one would wish for. In short,
 * which is what a change is tested by, each value has its turn.
 */
export const LONG = Bun.env.LONG === "1";
