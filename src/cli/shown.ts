/** What a terminal takes for an order, or shows elsewhere than where it stands. */
const NOT_SHOWN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

/** A name that a customer chose, or what a server says of itself, must not move the operator's cursor, or clear or colour his screen. */
export function shown(text: string): string {
	return text.replace(NOT_SHOWN, "\ufffd");
}

/** The same of a text of several lines. */
export function shownLines(text: string): string {
	return text.replace(NOT_SHOWN, (sign) => (sign === "\n" ? sign : "\ufffd"));
}

/** One line of JSON in which such signs are written as numbers: whoever reads it as JSON gets them as they are. */
export function shownJson(value: unknown): string {
	return JSON.stringify(value).replace(NOT_SHOWN, (sign) =>
		[...Array(sign.length).keys()].map((at) => `\\u${sign.charCodeAt(at).toString(16).padStart(4, "0")}`).join(""),
	);
}
