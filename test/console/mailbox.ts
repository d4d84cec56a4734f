import { type ReceivedMail, startMailServer } from "../support/mail-server.ts";
import { waitFor } from "../support/wait.ts";

/** One for all services that a test file starts, in this process and in others. */
const server = startMailServer();
const seen = new Set<ReceivedMail>();

/** Mails of a service that has this in its environment arrive here. */
export const MAIL_ENV = { SMTP_URL: server.url, MAIL_FROM: "Service <no-reply@service.example>" };

/** All mails to an address so far, oldest first. */
export function mailsTo(email: string): readonly ReceivedMail[] {
	return server.mails.filter(({ to }) => to.includes(email.toLowerCase()));
}

/** The newest mail to an address of those that were not asked for before; waits until there is one. */
export async function newMail(email: string): Promise<ReceivedMail> {
	let mail: ReceivedMail | undefined;
	await waitFor(() => {
		mail = mailsTo(email)
			.filter((one) => !seen.has(one))
			.at(-1);
		return mail !== undefined;
	}, `a new mail to ${email}`);
	for (const one of mailsTo(email)) seen.add(one);
	return mail as ReceivedMail;
}
