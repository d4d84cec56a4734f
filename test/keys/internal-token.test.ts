import { expect, test } from "bun:test";
import { readInternalToken, signInternalToken } from "../../src/keys/internal-token.ts";
import type { KeyDigest } from "../../src/keys/secret.ts";

const SECRET = "0123456789abcdef0123456789abcdef";
const keyDigest = "d".repeat(64) as KeyDigest;
const path = "/v1/chat/completions";
const NOW = Date.UTC(2026, 0, 1);
const token = signInternalToken(SECRET, { keyDigest, path }, NOW);
const read = (text: string, more: { secret?: string; path?: string; nowMs?: number } = {}) =>
	readInternalToken(more.secret ?? SECRET, text, more.path ?? path, more.nowMs ?? NOW);

test("an internal token is valid for its key and path for a minute", () => {
	expect(read(token)).toBe(keyDigest);
	expect(read(token, { nowMs: NOW + 59_000 })).toBe(keyDigest);
	expect(read(token, { nowMs: NOW + 60_000 })).toBeUndefined();
	expect(read(token, { path: "/v1/embeddings" })).toBeUndefined();
});

test("an internal token cannot be forged without the secret", () => {
	expect(read(token, { secret: SECRET.replace("0", "1") })).toBeUndefined();
	const [text = "", signature = ""] = token.slice(4).split(".");
	const claims = Buffer.from(JSON.stringify(["e".repeat(64), path, NOW + 60_000])).toString("base64url");
	for (const forged of [
		"",
		"tgi_",
		"tgi_.",
		`tgi_${text}`,
		`tgi_${text}.`,
		`tgi_${claims}.${signature}`,
		`tgi_.${signature}`,
		`tgi_${text}.${signature.slice(0, -2)}`,
		`tgi_${text}.${signature}AA`,
		`sk_${text}.${signature}`,
		`tgi_${"a".repeat(2_000)}.${signature}`,
	])
		expect([forged.slice(0, 20), read(forged)]).toEqual([forged.slice(0, 20), undefined]);
});

test("an internal token that claims to be valid for longer than a minute is refused", () => {
	const late = signInternalToken(SECRET, { keyDigest, path }, NOW + 10 * 60_000);
	expect(read(late)).toBeUndefined();
});
