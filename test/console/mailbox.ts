import { type Mail, mailText } from "../../src/console/mail/mailer.ts";
import { type ReceivedMail, startMailServer } from "../support/mail-server.ts";
import { waitFor } from "../support/wait.ts";

/** One for all services that a test file starts, in this process and in others. */
const server = startMailServer();
const seen = new Set<ReceivedMail>();
const LATE_MS = 2_000;
/** Whoever sends it tries again after 3 and 30 s. */
const AT_LAST_MS = 45_000;

/** Mails of a service that has this in its environment arrive here. */
export const MAIL_ENV = { SMTP_URL: server.url, MAIL_FROM: "Service <no-reply@service.example>" };

export function mailsTo(email: string): readonly ReceivedMail[] {
	return server.mails.filter(({ to }) => to.includes(email.toLowerCase()));
}

/** The newest mail to an address of those that were not asked for before; waits until there is one. */
export async function newMail(email: string): Promise<ReceivedMail> {
	let mail: ReceivedMail | undefined;
	const isThere = () => {
		mail = mailsTo(email)
			.filter((one) => !seen.has(one))
			.at(-1);
		return mail !== undefined;
	};
	try {
		await waitFor(isThere, `a new mail to ${email}`, LATE_MS);
	} catch (error) {
		// Now and then none has come to a file's service, for a reason that was not found: so this is said of it.
		console.warn(`${(error as Error).message}: ${await server.look()}`);
		await waitFor(isThere, `a new mail to ${email}`, AT_LAST_MS);
	}
	for (const one of mailsTo(email)) seen.add(one);
	return mail as ReceivedMail;
}

/** A mail as its recipient reads it, in English and in German. */
export function written(mail: Mail) {
	return { ...mail, ...mailText(mail, "en"), german: mailText(mail, "de") };
}
