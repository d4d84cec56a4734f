import { afterAll, mock } from "bun:test";
import { randomBytes, scryptSync } from "node:crypto";
import { stopTestPostgres } from "./postgres.ts";

/**
 * Cost of password hashes in tests: the library's cost of 16,384 takes 65 ms of processor time. `planes/apart.test.ts`
 * checks the real cost.
 */
const COST = 2;

/**
 * Lowers the cost of password hashes in this process: a run signs hundreds of people up, and no test depends on the
 * cost.
 */
function hashPasswordsCheaply(): void {
	const hash = (password: string, salt: string) =>
		scryptSync(password.normalize("NFKC"), salt, 64, { N: COST, r: 16, p: 1 }).toString("hex");
	mock.module("@better-auth/utils/password", () => ({
		async hashPassword(password: string) {
			const salt = randomBytes(16).toString("hex");
			return `${salt}:${hash(password, salt)}`;
		},
		async verifyPassword(kept: string, password: string) {
			const [salt = "", key] = kept.split(":");
			return hash(password, salt) === key;
		},
	}));
}

hashPasswordsCheaply();

// Registered outside of test files, so that it runs after the last file, or after each file if they share processes.
afterAll(stopTestPostgres, 60_000);
