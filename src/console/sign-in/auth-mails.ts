import type { Language } from "../../base/language.ts";
import type { TextId } from "../../base/translate.ts";
import type { Mail } from "../mail/mailer.ts";

/**
 * Mails about signing in. A mail with a link says how long it is valid, and what to do if the recipient did not request
 * it.
 */

export interface Addressee {
	/** Name of the service. */
	readonly service: string;
	readonly to: string;
	/** Language of the browser that caused the mail. */
	readonly asked: Language;
}

/** `link` leads to a page with a button: opening it changes nothing, since mail scanners open links too. */
export function signUpMail({ service, ...to }: Addressee, link: string): Mail {
	return {
		...{ ...to, link },
		subject: { id: "Confirm your address for {service}", values: { service } },
		paragraphs: [
			{ id: "Open this link within 24 hours and confirm that this is your address:" },
			link,
			{ id: "If you did not sign up, ignore this mail: nothing was made in your name." },
		],
	};
}

/** To a person who is registered already; the page answers the same for every address. */
export function knownMail({ service, ...to }: Addressee, origin: string): Mail {
	const link = `${origin}/sign-in`;
	return {
		...{ ...to, link },
		subject: { id: "You have signed up for {service} before", values: { service } },
		paragraphs: [
			{
				id: "Somebody, probably you, wanted to sign up with this address. It is known already: sign in, or set a new password there if you forgot yours.",
			},
			link,
			{ id: "If it was not you, ignore this mail: nothing was changed." },
		],
	};
}

export function resetMail({ service, ...to }: Addressee, link: string): Mail {
	return {
		...{ ...to, link },
		subject: { id: "Set a new password for {service}", values: { service } },
		paragraphs: [
			{ id: "Open this link within an hour to set a new password:" },
			link,
			{ id: "If you did not ask for it, ignore this mail: your password stays as it is." },
		],
		isWayIn: true,
	};
}

/** Tells of a change, for a person who did not make it. */
const CHANGES = {
	password: "Your password was changed, and all other sessions were ended.",
	"second factor on": "A second factor was set up for signing in, and all other sessions were ended.",
	"second factor off": "The second factor for signing in was switched off.",
	"passkey added": "A passkey was added, by which you can sign in.",
	"passkey removed": "A passkey of yours was removed.",
	"backup codes": "New backup codes for signing in were made; the former ones are worth nothing any more.",
	"codes guessed":
		"Somebody gave your password and then several wrong codes of your second factor. Unless it was you, somebody knows your password.",
} as const satisfies Record<string, TextId>;

export function changeMail({ service, ...to }: Addressee, change: keyof typeof CHANGES, origin: string): Mail {
	return {
		...to,
		subject: { id: "About your sign-in to {service}", values: { service } },
		paragraphs: [
			{ id: CHANGES[change] },
			{ id: "If it was not you, set a new password at once: {link}", values: { link: `${origin}/reset` } },
		],
	};
}
