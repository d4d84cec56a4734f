import { Fault } from "./fault.ts";

/**
 * What the database's texts and JSON do not hold: zero bytes, and halves of characters. JSON has both as escapes. As a text a half is
 * stored as another sign, as JSON it is refused: of two statements the first would be carried out and the second, which writes it down, not.
 */
const UNSTORABLE = /[\0\p{Cs}]/gu;

/** The text with a sign in place of each of them. */
export function storable(text: string): string {
	return text.replace(UNSTORABLE, "\u{fffd}");
}

/** Fault invalid_request, naming the field, if a name or a text anywhere in a parsed body has one of them. */
export function assertStorable(body: unknown): void {
	const fields: [string, unknown][] = typeof body === "object" && body !== null ? Object.entries(body) : [["", body]];
	for (const field of fields) {
		if (isStorable(field)) continue;
		const param = FIELD.test(field[0]) ? field[0] : null;
		throw new Fault("invalid_request", "The request has a character that no text may have.", { param });
	}
}

const FIELD = /^[A-Za-z_]\w{0,63}$/;

/** No recursion: who sent it chose its depth. */
function isStorable(value: unknown): boolean {
	const waiting: unknown[] = [value];
	for (const one of waiting) {
		if (typeof one === "string" && one.search(UNSTORABLE) >= 0) return false;
		if (typeof one !== "object" || one === null) continue;
		for (const [name, member] of Object.entries(one)) waiting.push(name, member);
	}
	return true;
}
