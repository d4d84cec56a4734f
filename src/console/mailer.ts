import nodemailer from "nodemailer";
import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";

export interface Mail {
	readonly to: string;
	readonly subject: string;
	/** Plain text. */
	readonly text: string;
	/** The link that the text is about; for the demo, whose page shows it. */
	readonly link?: string;
}

export interface SentMail extends Mail {
	readonly atMs: number;
}

export interface Mailer {
	/** Whether mails reach people, or who tries the demo. Without it nobody can verify an address. */
	readonly works: boolean;
	/** Sends in the background: how long it takes must not tell whether an address is known. Never throws. */
	send(mail: Mail): void;
	/** The demo without a mail server: the newest mails to an address, newest first. Who may see them is asked elsewhere. */
	outbox: ((to: string) => readonly SentMail[]) | undefined;
	stop(): void;
}

const OUTBOX_MAX = 200;
const TIMEOUT_MS = 15_000;
/** Mails that may be on their way at once; further ones are dropped and logged. */
const SENDING_MAX = 100;

export function createMailer(
	deps: { clock: Clock; log: Log },
	options: { smtpUrl: string | null; from: string | null; demo: boolean },
): Mailer {
	const { log } = deps;
	if (options.smtpUrl !== null) return createSmtpMailer(log, options.smtpUrl, options.from ?? "");
	if (options.demo) return createOutboxMailer(deps);
	log.warn(
		"SMTP_URL is not set: no mail is sent, so that nobody can sign up by password, reset one or be warned of low credit",
	);
	return {
		works: false,
		send: (mail) => log.warn("a mail was not sent: SMTP_URL is not set", { subject: mail.subject }),
		outbox: undefined,
		stop() {},
	};
}

function createSmtpMailer(log: Log, url: string, from: string): Mailer {
	const transport = nodemailer.createTransport({
		url,
		connectionTimeout: TIMEOUT_MS,
		greetingTimeout: TIMEOUT_MS,
		socketTimeout: TIMEOUT_MS,
	});
	let sending = 0;
	return {
		works: true,
		send({ to, subject, text }) {
			if (sending >= SENDING_MAX) {
				log.error("a mail was dropped: too many are on their way", { subject });
				return;
			}
			sending += 1;
			transport
				.sendMail({ from, to, subject, text })
				.catch((error: unknown) => log.error("a mail could not be sent", { subject, error }))
				.finally(() => {
					sending -= 1;
				});
		},
		outbox: undefined,
		stop: () => transport.close(),
	};
}

function createOutboxMailer({ clock }: { clock: Clock }): Mailer {
	const sent: SentMail[] = [];
	return {
		works: true,
		send(mail) {
			sent.unshift({ ...mail, atMs: clock.wallMs() });
			sent.length = Math.min(sent.length, OUTBOX_MAX);
		},
		outbox: (to) => sent.filter((mail) => mail.to === to.toLowerCase()),
		stop() {},
	};
}
