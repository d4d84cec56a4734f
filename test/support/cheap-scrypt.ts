/**
 * Loaded before a process (`bun --preload`), and by that before its children: scrypt costs it nothing, as in the tests'
 * own process (`cheap-passwords.ts`). One password took 65 ms of a processor, and people sign up by the hundred.
 */
import type { scrypt } from "node:crypto";

const COST = 2;

// Not imported: that would fix the names that others import before they are changed here.
const library: { scrypt: typeof scrypt } = require("node:crypto");
const { scrypt: atFullCost } = library;
library.scrypt = ((password, salt, length, options, done) =>
	atFullCost(password, salt, length, { ...options, N: COST }, done)) as typeof scrypt;
