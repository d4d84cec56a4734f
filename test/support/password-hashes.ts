import { randomBytes, scrypt } from "node:crypto";
import { promisify } from "node:util";

/**
 * Cost of password hashes in tests: the library's cost of 16,384 takes 65 ms of processor time. `planes/apart.test.ts`
 * checks the real cost.
 */
const COST = 2;

const scrypted = promisify<string, string, number, object, Buffer>(scrypt);

/** Counts hashes of this process that run at once. Each takes `minMs` or longer. */
export const passwordHashes = { running: 0, most: 0, minMs: 0 };

async function hash(password: string, salt: string): Promise<string> {
	passwordHashes.running += 1;
	passwordHashes.most = Math.max(passwordHashes.most, passwordHashes.running);
	const key = await scrypted(password.normalize("NFKC"), salt, 64, { N: COST, r: 16, p: 1 });
	await Bun.sleep(passwordHashes.minMs);
	passwordHashes.running -= 1;
	return key.toString("hex");
}

/** Replaces the library's module: a run signs hundreds of people up, and no test depends on the cost. */
export const cheapPasswords = {
	async hashPassword(password: string) {
		const salt = randomBytes(16).toString("hex");
		return `${salt}:${await hash(password, salt)}`;
	},
	async verifyPassword(kept: string, password: string) {
		const [salt = "", key] = kept.split(":");
		return (await hash(password, salt)) === key;
	},
};
