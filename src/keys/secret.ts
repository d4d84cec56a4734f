import { assert } from "../base/assert.ts";

/** An API key's secret with correct form and checksum. Whether a key with this secret exists is not known. */
export type Secret = string & { readonly brand: "secret" };

const BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/** Sticky regular expression: it matches from `lastIndex` to the end without copying the text. */
const BASE62_REST = /[0-9A-Za-z]+$/y;

/** Random characters of a secret: 40 Base62 characters have 238 bits. */
const RANDOM_CHARS = 40;
/** Minimum number of random characters: 32 have 190 bits, and future keys may be shorter. */
const RANDOM_CHARS_MIN = 32;
const RANDOM_CHARS_MAX = 43;
/** Six Base62 characters hold any CRC-32, because 62^6 > 2^32. */
const CHECKSUM_CHARS = 6;
/** Random characters that are displayed with the prefix, by which owners tell their keys apart. */
const SHOWN_CHARS = 4;

/**
 * Functions for one kind of secret: `<kind>_<service>_`, 40 random Base62 characters, and their CRC-32 in 6 Base62
 * characters, by which secret scanners recognize it.
 */
export function createSecretFormat<Text extends string>(kind: string) {
	const beginning = `${kind}_`;
	// At most three parts, because the runtime joins up to three texts in one allocation.
	const prefixOf = (serviceName: string) => `${beginning}${serviceName}_`;
	return {
		create: (serviceName: string) => withChecksum(prefixOf(serviceName) + randomBase62(RANDOM_CHARS)) as Text,
		/** Makes a secret from 128 hex digits of a keyed hash. All are equally likely: 62^40 is tiny against 2^512. */
		derive(serviceName: string, hex: string): Text {
			assert(/^[0-9a-f]{128}$/.test(hex), "two SHA-256 in hex");
			let rest = BigInt(`0x${hex}`);
			let text = "";
			for (let place = 0; place < RANDOM_CHARS; place++) {
				text += BASE62.charAt(Number(rest % 62n));
				rest /= 62n;
			}
			return withChecksum(prefixOf(serviceName) + text) as Text;
		},
		/** Returns the secret; undefined if form or checksum is wrong for this kind and service. Takes less than 0.3 µs. */
		parse(text: string, serviceName: string): Text | undefined {
			const prefix = prefixOf(serviceName);
			const randomChars = text.length - prefix.length - CHECKSUM_CHARS;
			if (randomChars < RANDOM_CHARS_MIN || randomChars > RANDOM_CHARS_MAX) return undefined;
			if (!text.startsWith(prefix)) return undefined;
			BASE62_REST.lastIndex = prefix.length;
			return BASE62_REST.test(text) && endsInItsChecksum(text) ? (text as Text) : undefined;
		},
		shown: (text: Text, serviceName: string) => ({
			prefix: text.slice(0, prefixOf(serviceName).length + SHOWN_CHARS),
			lastFour: text.slice(-SHOWN_CHARS),
		}),
	};
}

export const {
	create: newSecret,
	derive: derivedSecret,
	parse: parseSecret,
	shown: shownParts,
} = createSecretFormat<Secret>("sk");

const withChecksum = (body: string): string => body + checksum(body);

function checksum(body: string): string {
	let rest = Bun.hash.crc32(body);
	let text = "";
	for (let place = 0; place < CHECKSUM_CHARS; place++) {
		text = BASE62.charAt(rest % 62) + text;
		rest = Math.floor(rest / 62);
	}
	assert(rest === 0, "six Base62 characters hold a CRC-32");
	return text;
}

/** True if the text ends in its checksum. Creates no string, because every request calls this function. */
function endsInItsChecksum(text: string): boolean {
	const bodyChars = text.length - CHECKSUM_CHARS;
	let rest = Bun.hash.crc32(text.slice(0, bodyChars));
	for (let at = text.length - 1; at >= bodyChars; at--) {
		if (text.charCodeAt(at) !== BASE62.charCodeAt(rest % 62)) return false;
		rest = Math.floor(rest / 62);
	}
	return true;
}

/** Discards bytes from 248 on (the largest multiple of 62 in a byte), so that all characters are equally likely. */
function randomBase62(length: number): string {
	const unbiasedBelow = 248;
	let text = "";
	while (text.length < length) {
		for (const byte of crypto.getRandomValues(new Uint8Array(length * 2))) {
			if (byte < unbiasedBelow && text.length < length) text += BASE62.charAt(byte % 62);
		}
	}
	return text;
}

/** Stored digest of a secret: 64 hex digits. A distinct type, so that no other text is passed by mistake. */
export type KeyDigest = string & { readonly brand: "key digest" };

/** Computes the digest of a secret: HMAC-SHA-256 keyed with the pepper. */
export type DigestFunction = (secret: Secret) => KeyDigest;

/** 128 hex digits that depend on the pepper. `words` contain a space, so the result equals no secret's digest. */
export function derivedHex(digest: DigestFunction, ...words: readonly string[]): string {
	const half = (name: string) => digest([name, ...words].join(" ") as Secret);
	return half("first half of") + half("second half of");
}

/**
 * HMAC keyed with the pepper, which is stored outside the database, so a stolen table allows no guesses. A fast hash
 * suffices for 238 random bits. Copying a keyed hasher costs 0.35 µs, creating one 0.5 µs (Bun 1.4.5).
 */
export function createDigest(pepper: string): DigestFunction {
	const keyed = new Bun.CryptoHasher("sha256", pepper);
	return (secret) => keyed.copy().update(secret).digest("hex") as KeyDigest;
}
