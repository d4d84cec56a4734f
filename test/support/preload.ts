import { afterAll, mock } from "bun:test";
import { randomBytes, scryptSync } from "node:crypto";
import { stopTestPostgres } from "./postgres.ts";

/** The library uses 16,384 (65 ms of processor time each); `planes/apart.test.ts` checks a real console. */
const COST = 2;

/**
 * Lowers the cost of the services' password hashes in this process: a run signs up hundreds of people, and no test
 * depends on the cost.
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

// Outside of all files, so that it runs once after the last one, or after each in processes that share them.
afterAll(stopTestPostgres, 60_000);
