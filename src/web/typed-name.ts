/** Whether somebody typed the name that he sees: spaces are drawn as one, and signs without a form cannot be typed. */
export function isTypedName(typed: string, name: string): boolean {
	return asTyped(typed) === asTyped(name);
}

const asTyped = (text: string): string =>
	text
		.normalize("NFC")
		.replace(/\p{Cf}/gu, "")
		.replace(/\s+/g, " ")
		.trim();
