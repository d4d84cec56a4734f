import { type Clock, sleep } from "../../base/clock.ts";
import { newId } from "../../base/id.ts";
import { ENGLISH, isLanguage, type Language } from "../../base/language.ts";
import type { Log } from "../../base/log.ts";
import { isMailAddress, mailboxOf } from "../../base/mail-address.ts";
import { inEnglish, type KnownText, translate } from "../../base/translate.ts";
import type { Statements } from "../../db/statements.ts";
import type { ConsoleFigures } from "../console-figures.ts";
import { countWithin } from "../rate-counter.ts";
import { createSmtpTransport } from "./smtp-transport.ts";

interface MailText {
	readonly subject: string;
	readonly text: string;
}

export interface Mail {
	readonly to: string;
	/** The same for all mails of its kind: it has no text of a person, and mails are counted by it. */
	readonly subject: KnownText;
	/** Plain text; a string is the same in every language. The recipient's setting decides on the language, else `asked`. */
	readonly paragraphs: readonly (KnownText | string)[];
	/** What the browser asked for that made somebody send this; for who has no setting. */
	readonly asked?: Language;
	/** The link that the text is about; for the demo, whose page shows it. */
	readonly link?: string;
	/**
	 * The owner's way in, good for an hour at least: without a limit a day, which somebody else could use up to lock him
	 * out. The limit an hour leaves him a link that still works.
	 */
	readonly isWayIn?: true;
	/** The account asked for each of its kind, as often as its batches end. */
	readonly isAskedFor?: true;
	/** The same if it is sent again, so that a mailbox can know it by its Message-ID. */
	readonly id?: string;
}

export interface SentMail extends Omit<Mail, "subject" | "paragraphs" | "asked">, MailText {
	readonly atMs: number;
}

export interface Mailer {
	/** Whether mails reach people, or who tries the demo. Without it nobody can verify an address. */
	readonly works: boolean;
	/** Sends in the background, some times if need be: how long it takes must not tell whether an address is known. Never throws. */
	send(mail: Mail): void;
	/** Sends now. False if the recipient got as many of its kind as anybody may; rejects if it could not be sent. */
	deliver(mail: Mail): Promise<boolean>;
	/** The demo without a mail server: the newest mails to an address, newest first. Who may see them is asked elsewhere. */
	outbox: ((to: string) => readonly SentMail[]) | undefined;
	stop(): void;
}

type Figures = Pick<ConsoleFigures, "mail">;

const OUTBOX_MAX = 200;
const TIMEOUT_MS = 15_000;
/** Who was not refused for good is asked again: servers start anew, ask for patience, and want to see an unknown sender twice. */
const AGAIN_MS = [3_000, 30_000];
/** Mails that may be on their way at once, or waited for; further ones are dropped and logged. */
const SENDING_MAX = 100;
const TEXT_CHARS_MAX = 20_000;
/** Mails of one kind to one mailbox, from all instances together; further ones are dropped and logged. */
const MAILS_HOUR_MAX = 5;
const MAILS_DAY_MAX = 15;
const ASKED_FOR_HOUR_MAX = 60;
const ASKED_FOR_DAY_MAX = 300;
const HOUR_MS = 3_600_000;

export function createMailer(
	deps: { clock: Clock; log: Log; statements: Statements; figures: Figures },
	options: { server: { smtpUrl: string; from: string } | null; demo: boolean },
): Mailer {
	const { log } = deps;
	if (options.server !== null) return createSmtpMailer(deps, options.server.smtpUrl, options.server.from);
	if (options.demo) return createOutboxMailer(deps);
	log.warn(
		"SMTP_URL is not set: no mail is sent, so that nobody can sign up by password, reset one or be warned of low credit",
	);
	return {
		works: false,
		send: (mail) => log.warn("a mail was not sent: SMTP_URL is not set", { subject: inEnglish(mail.subject) }),
		deliver: () => Promise.reject(new Error("SMTP_URL is not set")),
		outbox: undefined,
		stop() {},
	};
}

function createSmtpMailer(
	deps: { clock: Clock; log: Log; statements: Statements; figures: Figures },
	url: string,
	from: string,
): Mailer {
	const { clock, log, statements, figures } = deps;
	const transport = createSmtpTransport(url, TIMEOUT_MS);
	const domain = /@([^\s>]+)/.exec(from)?.[1] ?? "localhost";
	let isStopped = false;
	let sending = 0;

	async function deliver(mail: Mail): Promise<boolean> {
		return told(async () => (await mayGet(statements, mail)) && post(mail));
	}

	/** The figure of what came of it. */
	async function told(work: () => Promise<boolean>): Promise<boolean> {
		try {
			const sent = await work();
			figures.mail(sent ? "sent" : "limited");
			return sent;
		} catch (error) {
			figures.mail("failed");
			throw error;
		}
	}

	async function post(mail: Mail): Promise<true> {
		const { to, subject, text, id } = await inLanguage(statements, mail);
		await transport.send({
			from,
			// As an object, so that nothing in the address is taken for a list.
			to: { name: "", address: to },
			subject,
			text: text.slice(0, TEXT_CHARS_MAX),
			...(id === undefined ? {} : { messageId: `<${id}@${domain}>` }),
		});
		return true;
	}

	async function deliverAtLast(mail: Mail): Promise<boolean> {
		// A mailbox that took it, of which nobody has heard, knows it again.
		const named = { id: newId("mail"), ...mail };
		let may: boolean | undefined;
		for (let nth = 0; ; nth += 1) {
			try {
				// Counted once, however often it is tried.
				may ??= await mayGet(statements, named);
				return may && (await post(named));
			} catch (error) {
				const againMs = AGAIN_MS[nth];
				if (againMs === undefined || isStopped || isFinal(error)) throw error;
				log.warn("a mail was not taken: it is tried again", { subject: inEnglish(mail.subject), againMs, error });
				await sleep(clock, againMs);
			}
		}
	}

	return {
		works: true,
		deliver,
		send(mail) {
			const subject = inEnglish(mail.subject);
			if (!isMailAddress(mail.to)) {
				log.warn("a mail was dropped: its recipient is no address", { subject });
				return;
			}
			if (sending >= SENDING_MAX) {
				figures.mail("dropped");
				log.error("a mail was dropped: too many are on their way", { subject });
				return;
			}
			sending += 1;
			told(() => deliverAtLast(mail))
				.then((sent) => {
					if (!sent) log.warn("a mail was dropped: its recipient got as many of its kind as anybody may", { subject });
				})
				.catch((error: unknown) => log.error("a mail could not be sent", { subject, error }))
				.finally(() => {
					sending -= 1;
				});
		},
		outbox: undefined,
		stop() {
			isStopped = true;
			transport.close();
		},
	};
}

/** By the mail server's own word; RFC 5321, 4.2.1: 5yz is a permanent failure. */
const isFinal = (error: unknown): boolean => Number((error as { responseCode?: unknown }).responseCode) >= 500;

/** In the language of who gets it: by his setting, else by what his browser asked for, else in English. */
async function inLanguage(statements: Statements, mail: Mail): Promise<Omit<SentMail, "atMs">> {
	const { subject: _, paragraphs: __, asked, ...rest } = mail;
	const [person] = await statements<{ language: string | null }>`
		select language from console_user where email = ${mail.to.toLowerCase()}::text`;
	const language = isLanguage(person?.language) ? person.language : asked;
	return { ...rest, ...mailText(mail, language ?? ENGLISH) };
}

export function mailText({ subject, paragraphs }: Pick<Mail, "subject" | "paragraphs">, language: Language): MailText {
	const written = paragraphs.map((one) => (typeof one === "string" ? one : translate(language, one)));
	return { subject: translate(language, subject), text: `${written.join("\n\n")}\n` };
}

/** By kind, so that whoever has one kind of mail sent to somebody does not stop the others. */
async function mayGet(statements: Statements, { to, subject, isWayIn, isAskedFor }: Mail): Promise<boolean> {
	const what = `${inEnglish(subject)} ${mailboxOf(to)}`;
	const hour = await countWithin(statements, "mails an hour", what, HOUR_MS);
	if (hour.count > (isAskedFor ? ASKED_FOR_HOUR_MAX : MAILS_HOUR_MAX)) return false;
	if (isWayIn) return true;
	// What was dropped within the hour does not use up the day.
	const day = await countWithin(statements, "mails a day", what, 24 * HOUR_MS);
	return day.count <= (isAskedFor ? ASKED_FOR_DAY_MAX : MAILS_DAY_MAX);
}

function createOutboxMailer({ clock, log, statements }: { clock: Clock; log: Log; statements: Statements }): Mailer {
	const sent: SentMail[] = [];
	async function deliver(mail: Mail): Promise<boolean> {
		sent.unshift({ ...(await inLanguage(statements, mail)), atMs: clock.wallMs() });
		sent.length = Math.min(sent.length, OUTBOX_MAX);
		return true;
	}
	return {
		works: true,
		deliver,
		send: (mail) =>
			void deliver(mail).catch((error: unknown) =>
				log.error("a mail could not be sent", { subject: inEnglish(mail.subject), error }),
			),
		outbox: (to) => sent.filter((mail) => mail.to === to.toLowerCase()),
		stop() {},
	};
}
