/** Finds positions in a JSON text that is in memory as bytes. */

export const QUOTE = 0x22;
const BACKSLASH = 0x5c;
export const COMMA = 0x2c;
export const COLON = 0x3a;
export const OPEN_LIST = 0x5b;
export const CLOSE_LIST = 0x5d;
export const OPEN_OBJECT = 0x7b;
export const CLOSE_OBJECT = 0x7d;

/** Lookup table by byte: 1 for each structural character. */
const SIGNS = new Uint8Array(256);
for (const sign of [QUOTE, COMMA, COLON, OPEN_LIST, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT]) SIGNS[sign] = 1;

const BACKSLASHES_MAX = 1_000_000;

/** Position of the next structural character in [`from`, `end`), or `end` if there is none. */
export function nextStructuralByte(bytes: Buffer, from: number, end: number): number {
	let at = from;
	while (at < end && SIGNS[bytes[at] as number] === 0) at += 1;
	return at;
}

/** Bytes that a loop searches before the native search, which has a fixed cost: most strings are short. */
const NEAR_BYTES = 64;

export function quoteAfter(bytes: Buffer, from: number): number {
	const near = Math.min(from + NEAR_BYTES, bytes.length);
	for (let at = from; at < near; at += 1) if (bytes[at] === QUOTE) return at;
	return bytes.indexOf(QUOTE, near);
}

/** True if the quote at `at` ends the string that starts at `from`: the number of backslashes before it is even. */
export function isUnescapedQuote(bytes: Buffer, from: number, at: number): boolean {
	let before = at - 1;
	const least = Math.max(from, at - BACKSLASHES_MAX);
	while (before >= least && bytes[before] === BACKSLASH) before -= 1;
	if (at - before > BACKSLASHES_MAX) throw new SyntaxError("too many escapes in a row");
	return (at - before) % 2 === 1;
}

/** Last position up to `to` at which a string may be split: neither inside a character nor inside an escape. */
export function splitPositionBefore(bytes: Buffer, from: number, to: number, end: number): number {
	if (to === end) return end;
	let cut = to;
	while (((bytes[cut] as number) & 0xc0) === 0x80 && cut > to - 4) cut -= 1;
	for (let back = 1; back < 6; back += 1) {
		const start = cut - back;
		if (bytes[start] !== BACKSLASH) continue;
		// An odd number of backslashes means that the last one starts an escape.
		if (isUnescapedQuote(bytes, from, start) && start + (bytes[start + 1] === 0x75 ? 6 : 2) > cut) return start;
		break;
	}
	return cut;
}

export function isBlank(bytes: Buffer, from: number, to: number): boolean {
	for (let at = from; at < to; at += 1) {
		const byte = bytes[at];
		if (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) return false;
	}
	return true;
}

export function assertBlank(bytes: Buffer, from: number, to: number): void {
	if (!isBlank(bytes, from, to)) throw new SyntaxError("text outside of the values");
}
