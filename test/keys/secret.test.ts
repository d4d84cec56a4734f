import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { createDigest, type KeyDigest, newSecret, parseSecret, shownParts } from "../../src/keys/secret.ts";

const BASE62 = [..."0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"];

describe("a key's secret", () => {
	test("has the documented form and checksum", () => {
		const secret = newSecret("service");
		expect(secret).toMatch(/^sk_service_[0-9A-Za-z]{46}$/);
		expect(parseSecret(secret, "service")).toBe(secret);
	});

	test("never repeats", () => {
		expect(new Set(Array.from({ length: 1000 }, () => newSecret("service"))).size).toBe(1000);
	});

	test("uses each of the 62 characters about equally often", () => {
		const counts = new Map<string, number>();
		const drawn = 2_000;
		for (let i = 0; i < drawn; i++) {
			for (const char of newSecret("s").slice(5, 45)) counts.set(char, (counts.get(char) ?? 0) + 1);
		}
		const expected = (drawn * 40) / 62;
		expect(counts.size).toBe(62);
		// Allows six standard deviations. A bias from `% 256` would be 25 % for eight of the characters.
		for (const count of counts.values()) expect(Math.abs(count - expected)).toBeLessThan(6 * Math.sqrt(expected));
	});

	test("is refused if any single character is changed", () => {
		fc.assert(
			fc.property(fc.nat(), fc.constantFrom(...BASE62, "_", "-", " ", "é"), (at, char) => {
				const secret = newSecret("service");
				const place = at % secret.length;
				if (secret[place] === char) return;
				const changed = secret.slice(0, place) + char + secret.slice(place + 1);
				expect(parseSecret(changed, "service")).toBeUndefined();
			}),
			{ numRuns: 3000 },
		);
	});

	test("is refused if any two neighbouring characters are swapped", () => {
		for (let round = 0; round < 100; round++) {
			const secret = newSecret("service");
			for (let at = 0; at + 1 < secret.length; at++) {
				if (secret[at] === secret[at + 1]) continue;
				const swapped = `${secret.slice(0, at)}${secret[at + 1]}${secret[at]}${secret.slice(at + 2)}`;
				expect(parseSecret(swapped, "service")).toBeUndefined();
			}
		}
	});

	test("is distinguished from other services' keys and from other texts", () => {
		const secret = newSecret("service");
		for (const text of [
			"",
			"sk_service_",
			secret.slice(0, -1),
			`${secret}0`,
			` ${secret}`,
			`${secret}\n`,
			secret.toUpperCase(),
		]) {
			expect(parseSecret(text, "service")).toBeUndefined();
		}
		expect(parseSecret(secret, "other")).toBeUndefined();
		fc.assert(fc.property(fc.string(), (text) => parseSecret(text, "service") === undefined));
		fc.assert(
			fc.property(
				fc.string({ unit: fc.constantFrom(...BASE62), minLength: 38, maxLength: 49 }),
				(text) => parseSecret(`sk_service_${text}`, "service") === undefined,
			),
		);
	});

	test("is displayed with only its first and last four characters", () => {
		const secret = newSecret("service");
		expect(shownParts(secret, "service")).toEqual({ prefix: secret.slice(0, 15), lastFour: secret.slice(-4) });
	});
});

describe("the digest of a key's secret", () => {
	test("is HMAC-SHA-256 of the secret under the pepper", () => {
		const secret = newSecret("service");
		const expected = new Bun.CryptoHasher("sha256", "pepper").update(secret).digest("hex") as KeyDigest;
		const digest = createDigest("pepper");
		expect(digest(secret)).toBe(expected);
		expect(digest(secret)).toBe(expected);
		expect(createDigest("other")(secret)).not.toBe(expected);
	});

	test("has a separate type, so that the compiler refuses other texts as digests", () => {
		const lookUp = (digest: KeyDigest) => digest.length;
		const digest = createDigest("pepper");
		const secret = newSecret("service");
		// @ts-expect-error: the compiler refuses a secret.
		expect(lookUp(secret)).not.toBe(64);
		// @ts-expect-error: and any other text.
		expect(lookUp("text")).not.toBe(64);
		// @ts-expect-error: and a digest where a secret is meant.
		expect(lookUp(digest(digest(secret)))).toBe(64);
	});
});
