import { isLabel } from "../../keys/key-settings.ts";

const NAME_CHARS_MAX = 100;

export const NAME_RULE = "A name is one line of at most 100 characters, without the address of a site.";

/** What reads as the address of a site, or becomes one in a mail: a scheme, `www.`, or words joined by a dot. */
const ADDRESS = /:\/\/|\bwww\.|[\p{L}\p{N}_-]\.[\p{L}]{2,}/iu;
/** Signs that change the direction of what is read, or that nobody sees, but for those that join letters. */
const UNSEEN = /[\p{Cf}\u2028\u2029]/u;
const JOINERS = /[\u200c\u200d]/g;

/** Whether people and their accounts may be called that: others read it in mails and on pages. */
export function isPersonName(text: string): boolean {
	// Full-width letters and dots are the same to a browser.
	const plain = text
		.normalize("NFKC")
		.replace(JOINERS, "")
		.replace(/[\u3002\uff0e\uff61]/g, ".");
	return isLabel(text, NAME_CHARS_MAX) && !UNSEEN.test(plain) && !ADDRESS.test(plain);
}
