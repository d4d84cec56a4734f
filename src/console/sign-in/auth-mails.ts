import type { Language } from "../../base/language.ts";
import type { Mail } from "../mail/mailer.ts";

/** The mails around signing in. Each that gives a right says until when, and what it is if nobody asked for it. */

export interface Addressee {
	/** The service's name. */
	readonly service: string;
	readonly to: string;
	/** What the browser asked for that made this mail be sent. */
	readonly asked: Language;
}

/** `link` leads to a page with a button: opening it changes nothing, since programs open links of mails too. */
export function signUpMail({ service, ...to }: Addressee, link: string): Mail {
	return {
		...to,
		subject: `Confirm your address for ${service}`,
		text: `Open this link within 24 hours and confirm that this is your address:\n\n${link}\n\nIf you did not sign up, ignore this mail: nothing was made in your name.\n`,
		german: {
			subject: `Bestätigen Sie Ihre Adresse für ${service}`,
			text: `Öffnen Sie diesen Link innerhalb von 24 Stunden und bestätigen Sie, dass dies Ihre Adresse ist:\n\n${link}\n\nFalls Sie sich nicht registriert haben, beachten Sie diese E-Mail nicht: In Ihrem Namen wurde nichts angelegt.\n`,
		},
		link,
	};
}

/** To who is known already; the page says to everybody that a mail is on its way. */
export function knownMail({ service, ...to }: Addressee, origin: string): Mail {
	const link = `${origin}/sign-in`;
	return {
		...to,
		subject: `You have signed up for ${service} before`,
		text: `Somebody, probably you, wanted to sign up with this address. It is known already: sign in, or set a new password there if you forgot yours.\n\n${link}\n\nIf it was not you, ignore this mail: nothing was changed.\n`,
		german: {
			subject: `Sie sind bei ${service} schon registriert`,
			text: `Jemand, wahrscheinlich Sie, wollte sich mit dieser Adresse registrieren. Sie ist schon bekannt: Melden Sie sich an oder legen Sie dort ein neues Passwort fest, wenn Sie Ihres vergessen haben.\n\n${link}\n\nFalls Sie es nicht waren, beachten Sie diese E-Mail nicht: Es wurde nichts geändert.\n`,
		},
		link,
	};
}

export function resetMail({ service, ...to }: Addressee, link: string): Mail {
	return {
		...to,
		subject: `Set a new password for ${service}`,
		text: `Open this link within an hour to set a new password:\n\n${link}\n\nIf you did not ask for it, ignore this mail: your password stays as it is.\n`,
		german: {
			subject: `Legen Sie ein neues Passwort für ${service} fest`,
			text: `Öffnen Sie diesen Link innerhalb einer Stunde, um ein neues Passwort festzulegen:\n\n${link}\n\nFalls Sie das nicht verlangt haben, beachten Sie diese E-Mail nicht: Ihr Passwort bleibt, wie es ist.\n`,
		},
		link,
		isWayIn: true,
	};
}

/** What was done, for who did not do it. */
const CHANGES = {
	password: {
		en: "Your password was changed, and all other sessions were ended.",
		de: "Ihr Passwort wurde geändert, und alle anderen Sitzungen wurden beendet.",
	},
	"second factor on": {
		en: "A second factor was set up for signing in, and all other sessions were ended.",
		de: "Für die Anmeldung wurde ein zweiter Faktor eingerichtet, und alle anderen Sitzungen wurden beendet.",
	},
	"second factor off": {
		en: "The second factor for signing in was switched off.",
		de: "Der zweite Faktor für die Anmeldung wurde ausgeschaltet.",
	},
	"passkey added": {
		en: "A passkey was added, by which you can sign in.",
		de: "Ein Passkey wurde hinzugefügt, mit dem Sie sich anmelden können.",
	},
	"passkey removed": { en: "A passkey of yours was removed.", de: "Einer Ihrer Passkeys wurde entfernt." },
	"backup codes": {
		en: "New backup codes for signing in were made; the former ones are worth nothing any more.",
		de: "Für die Anmeldung wurden neue Ersatzcodes erzeugt; die bisherigen gelten nicht mehr.",
	},
	"codes guessed": {
		en: "Somebody gave your password and then several wrong codes of your second factor. Unless it was you, somebody knows your password.",
		de: "Jemand hat Ihr Passwort und danach mehrere falsche Codes Ihres zweiten Faktors eingegeben. Falls Sie es nicht waren, kennt jemand Ihr Passwort.",
	},
} as const satisfies Record<string, Readonly<Record<Language, string>>>;

export function changeMail({ service, ...to }: Addressee, change: keyof typeof CHANGES, origin: string): Mail {
	return {
		...to,
		subject: `About your sign-in to ${service}`,
		text: `${CHANGES[change].en}\n\nIf it was not you, set a new password at once: ${origin}/reset\n`,
		german: {
			subject: `Zu Ihrer Anmeldung bei ${service}`,
			text: `${CHANGES[change].de}\n\nFalls Sie es nicht waren, legen Sie sofort ein neues Passwort fest: ${origin}/reset\n`,
		},
	};
}
