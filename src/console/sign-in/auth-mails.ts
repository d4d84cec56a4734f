import type { Language } from "../../base/language.ts";
import type { TextId } from "../../base/translate.ts";
import type { Mail, Mailer } from "../mail/mailer.ts";

const CHANGES = {
	password: "Your password was changed, and all other sessions were ended.",
	"second factor on": "Two-factor authentication was turned on, and all other sessions were ended.",
	"second factor off": "Two-factor authentication was turned off.",
	"passkey added": "A passkey was added to your sign-in.",
	"passkey removed": "A passkey was removed from your sign-in.",
	"backup codes": "New backup codes were created. The old ones no longer work.",
	"codes guessed":
		"Someone entered your password and then several wrong two-factor codes. If this was not you, your password is known to someone else.",
} as const satisfies Record<string, TextId>;

/** Language and network of the request, which has no session. */
export type MailCaller = Required<Pick<Mail, "asked" | "network">>;

export type SignInMails = ReturnType<typeof createSignInMails>;

/** Sign-in mails. Links open a page with a button and change nothing by themselves: mail scanners open links too. */
export function createSignInMails(
	mailer: Pick<Mailer, "send">,
	{ serviceName: service, origin }: { serviceName: string; origin: string },
) {
	return {
		signUp(to: string, caller: MailCaller, query: URLSearchParams) {
			const link = `${origin}/verify?${query}`;
			mailer.send({
				...{ to, ...caller, link, isByStranger: true },
				subject: { id: "Confirm your address for {service}", values: { service } },
				paragraphs: [
					{ id: "Open this link within 24 hours and confirm that this is your address:" },
					link,
					{ id: "If you did not sign up, ignore this mail: no account was created." },
				],
			});
		},
		/** For a sign-up with a known address; the page shows the same response for every address. */
		known(to: string, caller: MailCaller) {
			const link = `${origin}/sign-in`;
			mailer.send({
				...{ to, ...caller, link, isByStranger: true },
				subject: { id: "You already have an account at {service}", values: { service } },
				paragraphs: [
					{
						id: "Someone, probably you, tried to sign up with this address. It already has an account: sign in, or reset your password there if you forgot it.",
					},
					link,
					{ id: "If this was not you, ignore this mail: nothing was changed." },
				],
			});
		},
		reset(to: string, caller: MailCaller, token: string) {
			const link = `${origin}/reset?token=${encodeURIComponent(token)}`;
			mailer.send({
				...{ to, ...caller, link, isWayIn: true },
				subject: { id: "Set a new password for {service}", values: { service } },
				paragraphs: [
					{ id: "Open this link within an hour to set a new password:" },
					link,
					{ id: "If you did not request this, ignore this mail: your password stays the same." },
				],
			});
		},
		changed(to: string, asked: Language, change: keyof typeof CHANGES) {
			mailer.send({
				...{ to, asked },
				subject: { id: "About your sign-in to {service}", values: { service } },
				paragraphs: [
					{ id: CHANGES[change] },
					{ id: "If this was not you, set a new password immediately: {link}", values: { link: `${origin}/reset` } },
				],
			});
		},
	};
}
