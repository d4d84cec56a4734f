import { Fault } from "./fault.ts";

/**
 * Characters that Postgres cannot store: zero bytes, and unpaired surrogates, which text columns replace and JSON
 * columns refuse. Without this check, a statement could succeed and the statement that logs it could fail.
 */
const UNSTORABLE = /[\0\p{Cs}]/gu;

/** Replaces characters that Postgres cannot store by U+FFFD. */
export const replaceUnstorable = (text: string): string => text.replace(UNSTORABLE, "\u{fffd}");

/** Fault `invalid_request`, naming the field, if Postgres cannot store a member's name or text of a parsed body. */
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

/** A loop instead of recursion, because the client decides the depth. */
function isStorable(value: unknown): boolean {
	const waiting: unknown[] = [value];
	for (const one of waiting) {
		if (typeof one === "string" && one.search(UNSTORABLE) >= 0) return false;
		if (typeof one !== "object" || one === null) continue;
		for (const [name, member] of Object.entries(one)) waiting.push(name, member);
	}
	return true;
}
