import type { Language } from "../../base/language.ts";
import type { TextId } from "../../base/translate.ts";
import type { Mailer } from "../mail/mailer.ts";

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

export type SignInMails = ReturnType<typeof createSignInMails>;

/**
 * Mails about signing in, in the language of the browser that caused them (`asked`). A mail with a link says how long
 * the link is valid. Links lead to a page with a button: mail scanners open links too.
 */
export function createSignInMails(
	mailer: Pick<Mailer, "send">,
	{ serviceName: service, origin }: { serviceName: string; origin: string },
) {
	return {
		signUp(to: string, asked: Language, query: URLSearchParams) {
			const link = `${origin}/verify?${query}`;
			mailer.send({
				...{ to, asked, link },
				subject: { id: "Confirm your address for {service}", values: { service } },
				paragraphs: [
					{ id: "Open this link within 24 hours and confirm that this is your address:" },
					link,
					{ id: "If you did not sign up, ignore this mail: nothing was made in your name." },
				],
			});
		},
		/** To a person who is registered already; the page answers the same for every address. */
		known(to: string, asked: Language) {
			const link = `${origin}/sign-in`;
			mailer.send({
				...{ to, asked, link },
				subject: { id: "You have signed up for {service} before", values: { service } },
				paragraphs: [
					{
						id: "Somebody, probably you, wanted to sign up with this address. It is known already: sign in, or set a new password there if you forgot yours.",
					},
					link,
					{ id: "If it was not you, ignore this mail: nothing was changed." },
				],
			});
		},
		reset(to: string, asked: Language, token: string) {
			const link = `${origin}/reset?token=${encodeURIComponent(token)}`;
			mailer.send({
				...{ to, asked, link, isWayIn: true },
				subject: { id: "Set a new password for {service}", values: { service } },
				paragraphs: [
					{ id: "Open this link within an hour to set a new password:" },
					link,
					{ id: "If you did not ask for it, ignore this mail: your password stays as it is." },
				],
			});
		},
		changed(to: string, asked: Language, change: keyof typeof CHANGES) {
			mailer.send({
				...{ to, asked },
				subject: { id: "About your sign-in to {service}", values: { service } },
				paragraphs: [
					{ id: CHANGES[change] },
					{ id: "If it was not you, set a new password at once: {link}", values: { link: `${origin}/reset` } },
				],
			});
		},
	};
}
