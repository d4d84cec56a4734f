import { type Mail, mailText } from "../../src/console/mail/mailer.ts";
import { type ReceivedMail, startMailServer } from "../support/mail-server.ts";
import { waitFor } from "../support/wait.ts";

/** All services of a test file share this mail server. */
const server = startMailServer();
const seen = new Set<ReceivedMail>();
const LATE_MS = 2_000;
/** Longer than the mailer's retries after 3 and 30 s. */
const AT_LAST_MS = 45_000;

/** Environment of a service that sends its mails to this server. */
export const MAIL_ENV = { SMTP_URL: server.url, MAIL_FROM: "Service <no-reply@service.example>" };

export function mailsTo(email: string): readonly ReceivedMail[] {
	return server.mails.filter(({ to }) => to.includes(email.toLowerCase()));
}

/** Returns the newest unread mail to an address, waiting for its arrival. */
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
		// In rare runs no mail arrives in a test file, for an unknown reason. The warning reports the mail server's state.
		console.warn(`${(error as Error).message}: ${await server.look()}`);
		await waitFor(isThere, `a new mail to ${email}`, AT_LAST_MS);
	}
	for (const one of mailsTo(email)) seen.add(one);
	return mail as ReceivedMail;
}

export function mailTexts(mail: Mail) {
	return { ...mail, ...mailText(mail, "en"), german: mailText(mail, "de") };
}
