/** Without letters that look like digits: people type it into their bank's form. */
const REFERENCE_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const REFERENCE_CHARS = 10;

/** A payment reference: `TU-XXXXX-XXXXX`. */
export function newReference(): string {
	const random = crypto.getRandomValues(new Uint8Array(REFERENCE_CHARS));
	const text = [...random].map((byte) => REFERENCE_ALPHABET.charAt(byte % 32)).join("");
	return `TU-${text.slice(0, 5)}-${text.slice(5)}`;
}
