import { assert } from "../base/assert.ts";

/** The text of an API key whose form and checksum are right; whether it was ever issued is another question. */
export type Secret = string & { readonly brand: "secret" };

const BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/** From where it is told to begin to the end: no text is cut out for it. */
const BASE62_REST = /[0-9A-Za-z]+$/y;

/** 40 Base62 characters hold 238 bits. */
const RANDOM_CHARS = 40;
/** What a parser takes: keys of other lengths may be issued one day, and 32 characters still hold 190 bits. */
const RANDOM_CHARS_MIN = 32;
const RANDOM_CHARS_MAX = 43;
/** 62^6 > 2^32, so six characters hold any CRC-32. */
const CHECKSUM_CHARS = 6;
/** Characters of the random part that may be shown with the prefix, to tell one key from another. */
const SHOWN_CHARS = 4;

/**
 * Makes a secret: `sk_<service>_` + 40 random Base62 characters + the CRC-32 of all before it, in 6 Base62 characters.
 * Underscores, so that a double click selects all of it; a checksum, so that scanners and we can tell it from garbage.
 */
export function newSecret(serviceName: string): Secret {
	return newSecretText(secretPrefix(serviceName)) as Secret;
}

/** A fresh text of the form of all secrets. */
export function newSecretText(prefix: string): string {
	return withChecksum(prefix + randomBase62(RANDOM_CHARS));
}

/**
 * The one secret that belongs to 128 hex digits, as a keyed hash makes them: of 512 bits, 62^40 takes so few that none of
 * the secrets is likelier than another.
 */
export function derivedSecret(serviceName: string, hex: string): Secret {
	return derivedSecretText(secretPrefix(serviceName), hex) as Secret;
}

export function derivedSecretText(prefix: string, hex: string): string {
	assert(/^[0-9a-f]{128}$/.test(hex), "two SHA-256 in hex");
	let rest = BigInt(`0x${hex}`);
	let text = "";
	for (let place = 0; place < RANDOM_CHARS; place++) {
		text += BASE62.charAt(Number(rest % 62n));
		rest /= 62n;
	}
	return withChecksum(prefix + text);
}

/** Reads what a client sent; undefined unless it has the form and checksum of a key of this service. Costs under 0.3 µs. */
export function parseSecret(text: string, serviceName: string): Secret | undefined {
	return isSecretText(text, secretPrefix(serviceName)) ? (text as Secret) : undefined;
}

/** Whether a text has the form of all secrets, this prefix and a right checksum. */
export function isSecretText(text: string, prefix: string): boolean {
	const randomChars = text.length - prefix.length - CHECKSUM_CHARS;
	if (randomChars < RANDOM_CHARS_MIN || randomChars > RANDOM_CHARS_MAX) return false;
	if (!text.startsWith(prefix)) return false;
	BASE62_REST.lastIndex = prefix.length;
	return BASE62_REST.test(text) && endsInItsChecksum(text);
}

/** What may be shown and stored of a secret. */
export function shownParts(secret: Secret, serviceName: string): { prefix: string; lastFour: string } {
	return shownOfText(secret, secretPrefix(serviceName));
}

export function shownOfText(text: string, prefix: string): { prefix: string; lastFour: string } {
	return { prefix: text.slice(0, prefix.length + SHOWN_CHARS), lastFour: text.slice(-SHOWN_CHARS) };
}

function secretPrefix(serviceName: string): string {
	return `sk_${serviceName}_`;
}

function withChecksum(body: string): string {
	return body + checksum(body);
}

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

/** As if `checksum` were made and compared, without a text for each of its characters: this runs on each request. */
function endsInItsChecksum(text: string): boolean {
	const bodyChars = text.length - CHECKSUM_CHARS;
	let rest = Bun.hash.crc32(text.slice(0, bodyChars));
	for (let at = text.length - 1; at >= bodyChars; at--) {
		if (text.charCodeAt(at) !== BASE62.charCodeAt(rest % 62)) return false;
		rest = Math.floor(rest / 62);
	}
	return true;
}

/** Bytes from 248 on are thrown away: 248 is the largest multiple of 62 in a byte, so no character is likelier. */
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
