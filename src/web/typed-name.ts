/** Whether the typed text equals the shown name: spaces are drawn as one, and invisible characters cannot be typed. */
export function isTypedName(typed: string, name: string): boolean {
	return asTyped(typed) === asTyped(name);
}

const asTyped = (text: string): string =>
	text
		.normalize("NFC")
		.replace(/\p{Cf}/gu, "")
		.replace(/\s+/g, " ")
		.trim();
