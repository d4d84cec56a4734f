/**
 * Preloaded into a process and its children (`bun --preload`): lowers scrypt's cost, as `preload.ts` does, which takes
 * 65 ms of processor time per password.
 */
import type { scrypt } from "node:crypto";

const COST = 2;

// `require` returns an object whose functions can be replaced; an import would be bound to the original functions.
const library: { scrypt: typeof scrypt } = require("node:crypto");
const { scrypt: atFullCost } = library;
library.scrypt = ((password, salt, length, options, done) =>
	atFullCost(password, salt, length, { ...options, N: COST }, done)) as typeof scrypt;
