/**
 * True for a single mail address. Refuses texts that a mail program could read as two addresses, or as a name with
 * another address. Also refuses other spellings, such as a dot after the domain.
 */
export function isMailAddress(text: string): boolean {
	if (text.length > ADDRESS_CHARS_MAX) return false;
	const [, domain] = /^[^\s@,;:<>()[\]\\"\p{C}]+@([^\s@,;:<>()[\]\\"\p{C}]+)$/u.exec(text) ?? [];
	return domain?.split(".").every((label) => label !== "") ?? false;
}

export const ADDRESS_CHARS_MAX = 320;

/** The address without the part after a plus, which reaches the same mailbox. */
export function mailboxWithoutTag(address: string): string {
	const at = address.lastIndexOf("@");
	const name = address.slice(0, at).toLowerCase();
	return `${name.split("+")[0] || name}${address.slice(at).toLowerCase()}`;
}
