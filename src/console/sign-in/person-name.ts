import { isLabel } from "../../keys/key-settings.ts";

export const NAME_CHARS_MAX = 100;

export const NAME_RULE = "A name must be one line of at most 100 characters, without a web address.";

/** Text that mail programs turn into a link: a scheme, `www.`, or words joined by a dot. */
const ADDRESS = /:\/\/|\bwww\.|[\p{L}\p{N}_-]\.[\p{L}]{2,}/iu;
/** Bidirectional controls and invisible characters, except joiners. */
const UNSEEN = /[\p{Cf}\u2028\u2029]/u;
const JOINERS = /[\u200c\u200d]/g;

/** True if people and accounts may have this name, which others see in mails. Refuses names that look like links. */
export function isPersonName(text: string): boolean {
	if (!isLabel(text, NAME_CHARS_MAX)) return false;
	// NFKC turns full-width letters and dots, which browsers treat as ASCII, into ASCII.
	const plain = text
		.normalize("NFKC")
		.replace(JOINERS, "")
		.replace(/[\u3002\uff0e\uff61]/g, ".");
	return !UNSEEN.test(plain) && !ADDRESS.test(plain);
}
