import { type Mail, mailText } from "../../src/console/mail/mailer.ts";
import { type ReceivedMail, startMailServer } from "../support/mail-server.ts";
import { waitFor } from "../support/wait.ts";

/** Shared by all services of a test file, in this process and others. */
const server = startMailServer();
const seen = new Set<ReceivedMail>();
const LATE_MS = 2_000;
/** The mailer retries after 3 and 30 s. */
const AT_LAST_MS = 45_000;

/** Environment of a service whose mails arrive here. */
export const MAIL_ENV = { SMTP_URL: server.url, MAIL_FROM: "Service <no-reply@service.example>" };

export function mailsTo(email: string): readonly ReceivedMail[] {
	return server.mails.filter(({ to }) => to.includes(email.toLowerCase()));
}

/** The newest unread mail to an address; waits for one. */
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
		// Rarely no mail arrives in a file, for an unknown reason: the warning shows the server's state.
		console.warn(`${(error as Error).message}: ${await server.look()}`);
		await waitFor(isThere, `a new mail to ${email}`, AT_LAST_MS);
	}
	for (const one of mailsTo(email)) seen.add(one);
	return mail as ReceivedMail;
}

export function written(mail: Mail) {
	return { ...mail, ...mailText(mail, "en"), german: mailText(mail, "de") };
}
