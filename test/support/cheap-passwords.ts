import { mock } from "bun:test";
import { randomBytes, scryptSync } from "node:crypto";

/** The library's functions have 16,384, which `planes/apart.test.ts` holds a real console to: 65 ms of a processor each. */
const COST = 2;

/**
 * Has the services in this process hash passwords by the same function at a cost that is nothing: what a test is about
 * is never how long a guess takes, and a run signs up hundreds of people.
 */
export function hashPasswordsCheaply(): void {
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
