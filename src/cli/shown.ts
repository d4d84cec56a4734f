/** Control characters, and characters that a terminal displays in another place. */
const NOT_SHOWN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

/** Replaces control characters, so that a customer's text cannot move the cursor or colour the screen. */
export function shown(text: string): string {
	return text.replace(NOT_SHOWN, "\ufffd");
}

/** Like `shown`, but keeps line ends. */
export function shownLines(text: string): string {
	return text.replace(NOT_SHOWN, (sign) => (sign === "\n" ? sign : "\ufffd"));
}

/** One line of JSON with such characters escaped, so that a JSON parser still reads the original. */
export function shownJson(value: unknown): string {
	return JSON.stringify(value).replace(NOT_SHOWN, (sign) =>
		[...Array(sign.length).keys()].map((at) => `\\u${sign.charCodeAt(at).toString(16).padStart(4, "0")}`).join(""),
	);
}
