/** Control characters, and characters that change the direction or order of text. */
const NOT_SHOWN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

/** Replaces control characters, so that a text of a customer cannot control the operator's terminal. */
export const printable = (text: string): string => text.replace(NOT_SHOWN, "\ufffd");

/** Like `printable`, but keeps line breaks. */
export function printableLines(text: string): string {
	return text.replace(NOT_SHOWN, (sign) => (sign === "\n" ? sign : "\ufffd"));
}

/** Formats JSON on one line, with control characters escaped: a parser still reads the original text. */
export function printableJson(value: unknown): string {
	return JSON.stringify(value).replace(NOT_SHOWN, (sign) =>
		[...Array(sign.length).keys()].map((at) => `\\u${sign.charCodeAt(at).toString(16).padStart(4, "0")}`).join(""),
	);
}
