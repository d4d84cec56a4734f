import type { Secret } from "./secret.ts";

/** The stored form of a secret: 64 hex digits. The brand keeps secrets and other texts from being used as one. */
export type KeyDigest = string & { readonly brand: "key digest" };

/** Computes a secret's digest: HMAC-SHA-256 under the pepper. */
export type Digest = (secret: Secret) => KeyDigest;

/**
 * 128 hex digits that need the pepper, the same for the same words. Never a secret's digest: words contain a space, a
 * secret does not.
 */
export function derivedHex(digest: Digest, ...words: readonly string[]): string {
	const half = (name: string) => digest([name, ...words].join(" ") as Secret);
	return half("first half of") + half("second half of");
}

/**
 * The pepper is stored outside the database, so a leaked table gives no way to test guesses. A fast hash suffices:
 * secrets have 238 random bits, and this runs on each request. Copying a keyed hasher costs 0.35 µs, creating one 0.5
 * µs (Bun 1.4.5).
 */
export function createDigest(pepper: string): Digest {
	const keyed = new Bun.CryptoHasher("sha256", pepper);
	return (secret) => keyed.copy().update(secret).digest("hex") as KeyDigest;
}
