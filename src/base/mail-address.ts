/**
 * One address and nothing that a mail program could take for two, or for a name with another address; and no second spelling of one,
 * as a dot behind the domain is.
 */
export function isMailAddress(text: string): boolean {
	if (text.length > ADDRESS_CHARS_MAX) return false;
	const [, domain] = /^[^\s@,;:<>()[\]\\"\p{C}]+@([^\s@,;:<>()[\]\\"\p{C}]+)$/u.exec(text) ?? [];
	return domain?.split(".").every((label) => label !== "") ?? false;
}

const ADDRESS_CHARS_MAX = 320;

/** Where it arrives: what follows a plus is a note to oneself. */
export function mailboxOf(address: string): string {
	const at = address.lastIndexOf("@");
	const name = address.slice(0, at).toLowerCase();
	return `${name.split("+")[0] || name}${address.slice(at).toLowerCase()}`;
}
