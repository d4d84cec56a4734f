import { Fault } from "./fault.ts";

/**
 * Characters that the database's texts and JSON cannot hold: zero bytes and unpaired surrogates, which JSON can escape.
 * A text stores a surrogate as another character, JSON refuses it. So the first of two statements would succeed and the
 * second, which logs it, would fail.
 */
const UNSTORABLE = /[\0\p{Cs}]/gu;

/** Replaces each of them with U+FFFD. */
export function storable(text: string): string {
	return text.replace(UNSTORABLE, "\u{fffd}");
}

/** Fault `invalid_request`, naming the field, if a name or text anywhere in a parsed body contains one. */
export function assertStorable(body: unknown): void {
	const fields: [string, unknown][] = typeof body === "object" && body !== null ? Object.entries(body) : [["", body]];
	for (const field of fields) {
		if (isStorable(field)) continue;
		const param = FIELD.test(field[0]) ? field[0] : null;
		throw new Fault(
			"invalid_request",
			"The request contains a character that cannot be stored, such as U+0000. Remove it.",
			{ param },
		);
	}
}

const FIELD = /^[A-Za-z_]\w{0,63}$/;

/** No recursion: the sender chooses the depth. */
function isStorable(value: unknown): boolean {
	const waiting: unknown[] = [value];
	for (const one of waiting) {
		if (typeof one === "string" && one.search(UNSTORABLE) >= 0) return false;
		if (typeof one !== "object" || one === null) continue;
		for (const [name, member] of Object.entries(one)) waiting.push(name, member);
	}
	return true;
}
