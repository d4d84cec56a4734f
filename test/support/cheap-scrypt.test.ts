import { expect, test } from "bun:test";
import { scryptSync } from "node:crypto";
import { join } from "node:path";

const HASHING = `import { hashPassword } from "@better-auth/utils/password"; console.log(await hashPassword("a password"));`;

/** What a process of its own keeps of a password: salt and hash. */
async function keptBy(...flags: readonly string[]): Promise<readonly [salt: string, hash: string]> {
	const child = Bun.spawn([process.execPath, ...flags, "-e", HASHING], { cwd: import.meta.dir, stdout: "pipe" });
	const [salt = "", hash = ""] = (await new Response(child.stdout).text()).trim().split(":");
	return [salt, hash];
}
const hashed = (salt: string, N: number) =>
	scryptSync("a password", salt, 64, { N, r: 16, p: 1, maxmem: 64 * 1024 * 1024 }).toString("hex");

test("the library that keeps passwords works at no cost where this was loaded before it, and at its own elsewhere", async () => {
	const [salt, hash] = await keptBy("--preload", join(import.meta.dir, "cheap-scrypt.ts"));
	expect(hash).toBe(hashed(salt, 2));
	const [ownSalt, ownHash] = await keptBy();
	expect(ownHash).toBe(hashed(ownSalt, 16_384));
});
