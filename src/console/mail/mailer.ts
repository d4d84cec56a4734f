import { type Clock, sleep } from "../../base/clock.ts";
import { createFairPool } from "../../base/fair-pool.ts";
import { newId } from "../../base/id.ts";
import { ENGLISH, isLanguage, type Language } from "../../base/language.ts";
import type { Log } from "../../base/log.ts";
import { isMailAddress, mailboxWithoutTag } from "../../base/mail-address.ts";
import { englishText, type KnownText, translate } from "../../base/translate.ts";
import type { Statements } from "../../db/statements.ts";
import type { ConsoleFigures } from "../console-figures.ts";
import { countWithin } from "../rate-counter.ts";
import { createSmtpTransport } from "./smtp-transport.ts";

export interface Mail {
	readonly to: string;
	readonly subject: KnownText;
	/** Plain strings are not translated. Language: the recipient's setting, else `asked`, else English. */
	readonly paragraphs: readonly (KnownText | string)[];
	/** Language of the browser whose request caused the mail, for recipients without a language setting. */
	readonly asked?: Language;
	readonly link?: string;
	/** For password resets: no daily limit, because a stranger could use it up and lock the owner out. */
	readonly isWayIn?: true;
	/** For mails that strangers can cause to every address. They have places of their own. */
	readonly isByStranger?: true;
	/** Owner of the mail's place: the caller's network (`addressSite`). Default: the recipient's mailbox. */
	readonly network?: string;
	/** For subscribed mails, which the end of each batch may cause: they have higher limits. */
	readonly isAskedFor?: true;
	/** Message-ID; equal for all attempts to send this mail. */
	readonly id?: string;
}

export interface SentMail extends Omit<Mail, "subject" | "paragraphs" | "asked" | "network"> {
	readonly subject: string;
	readonly text: string;
	readonly atMs: number;
}

export interface Mailer {
	/** True if mails reach the recipient or the demo's outbox page. Otherwise no mail address can be verified. */
	readonly works: boolean;
	/** Sends in the background: the response time must not reveal whether an address is known. Never throws. */
	send(mail: Mail): void;
	/** Sends now. Returns false if the recipient reached the limit of this kind of mail; rejects if sending failed. */
	deliver(mail: Mail): Promise<boolean>;
	/** Demo without a mail server: the mails to an address, newest first. Callers check the right to see them. */
	outbox: ((to: string) => readonly SentMail[]) | undefined;
	stop(): void;
}

interface MailerDeps {
	readonly clock: Clock;
	readonly log: Log;
	readonly statements: Statements;
	readonly figures: Pick<ConsoleFigures, "mail">;
}

const OUTBOX_MAX = 200;
const TIMEOUT_MS = 15_000;
const AGAIN_MS = [3_000, 30_000];
/** Places for mails of strangers, and for all others. As many more mails of each wait for a retry. */
const SENDING_MAX = 50;
/** Fraction of the places that one owner may use. Further mails are dropped and logged. */
const OWN_SHARE = 1 / 2;
const TEXT_CHARS_MAX = 20_000;
/** Mails of one kind to one mailbox per hour, counted over all instances. Further mails are dropped and logged. */
const MAILS_HOUR_MAX = 5;
const MAILS_DAY_MAX = 15;
const ASKED_FOR_HOUR_MAX = 60;
const ASKED_FOR_DAY_MAX = 300;
const HOUR_MS = 3_600_000;

export function createMailer(
	deps: MailerDeps,
	options: { server: { smtpUrl: string; from: string } | null; demo: boolean },
): Mailer {
	const { log } = deps;
	if (options.server !== null) return createSmtpMailer(deps, options.server.smtpUrl, options.server.from);
	if (options.demo) return createOutboxMailer(deps);
	log.warn(
		"SMTP_URL is not set: no mail is sent, so no one can sign up by password, reset one or be warned of low credit",
	);
	return {
		works: false,
		send: (mail) => log.warn("a mail was not sent: SMTP_URL is not set", { subject: englishText(mail.subject) }),
		deliver: () => Promise.reject(new Error("SMTP_URL is not set")),
		outbox: undefined,
		stop() {},
	};
}

function createSmtpMailer({ clock, log, statements, figures }: MailerDeps, url: string, from: string): Mailer {
	const transport = createSmtpTransport(url, TIMEOUT_MS);
	const domain = /@([^\s>]+)/.exec(from)?.[1] ?? "localhost";
	const ofStrangers = createPlaces(clock);
	const ofOthers = createPlaces(clock);
	let isStopped = false;

	async function counted(work: () => Promise<boolean>): Promise<boolean> {
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
			// An object, because the library would read a string as a list of addresses.
			to: { name: "", address: to },
			subject,
			text: text.slice(0, TEXT_CHARS_MAX),
			...(id === undefined ? {} : { messageId: `<${id}@${domain}>` }),
		});
		return true;
	}

	async function deliverAtLast(mail: Mail, places: Places): Promise<boolean> {
		// All attempts have the same Message-ID, by which the mailbox recognizes a repeated mail.
		const named = { id: newId("mail"), ...mail };
		let may: boolean | undefined;
		for (let nth = 0; ; nth += 1) {
			try {
				return await places.send(mail, async () => {
					// Counts the mail once towards its limits, however many attempts it needs.
					may ??= await mayGet(statements, named);
					return may && (await post(named));
				});
			} catch (error) {
				const againMs = AGAIN_MS[nth];
				if (againMs === undefined || isStopped || isFinal(error)) throw error;
				log.warn("a mail was not accepted and is retried", { subject: englishText(mail.subject), againMs, error });
				await places.wait(mail, againMs);
			}
		}
	}

	return {
		works: true,
		deliver: (mail) => counted(async () => (await mayGet(statements, mail)) && post(mail)),
		send(mail) {
			const subject = englishText(mail.subject);
			if (!isMailAddress(mail.to)) {
				log.warn("a mail was dropped: its recipient is no address", { subject });
				return;
			}
			const places = mail.isByStranger ? ofStrangers : ofOthers;
			if (!places.fits(mail)) {
				figures.mail("dropped");
				// Logged once until the backlog has shrunk, so that a flood does not fill the log.
				if (!places.isDropping) log.error("a mail was dropped: too many are pending", { subject });
				places.isDropping = true;
				return;
			}
			counted(() => deliverAtLast(mail, places))
				.then((sent) => {
					if (!sent) log.warn("a mail was dropped: its recipient reached the limit of this kind", { subject });
				})
				.catch((error: unknown) => log.error("a mail could not be sent", { subject, error }));
		},
		outbox: undefined,
		stop() {
			isStopped = true;
			transport.close();
		},
	};
}

type Places = ReturnType<typeof createPlaces>;

/** Shares places among owners. A mail that waits for a retry has another place: it delays no mail that is new. */
function createPlaces(clock: Clock) {
	const sending = createFairPool({ size: () => SENDING_MAX, share: () => OWN_SHARE });
	const waiting = createFairPool({ size: () => SENDING_MAX, share: () => 1, allYield: true });
	const ownerOf = ({ network, to }: Mail) => network ?? mailboxWithoutTag(to);
	return {
		isDropping: false,
		fits: (mail: Mail): boolean => sending.fits(ownerOf(mail), 1),
		/** Faults `rate_limit_exceeded` and `overloaded` without a place. */
		async send<Sent>(mail: Mail, work: () => Promise<Sent>): Promise<Sent> {
			sending.take(ownerOf(mail));
			try {
				return await work();
			} finally {
				sending.giveBack(ownerOf(mail));
				if (sending.all() < SENDING_MAX / 4) this.isDropping = false;
			}
		},
		/** Rejects without a place, or if an owner with fewer mails needs it: the longest pause ends first. */
		async wait(mail: Mail, ms: number): Promise<void> {
			const { promise, reject } = Promise.withResolvers<never>();
			const leave = waiting.enter(ownerOf(mail), { pace: () => -ms, giveUp: reject });
			await Promise.race([promise, sleep(clock, ms)]).finally(leave);
		},
	};
}

/** SMTP replies 500 to 599 are permanent failures (RFC 5321, 4.2.1). */
const isFinal = (error: unknown): boolean => Number((error as { responseCode?: unknown }).responseCode) >= 500;

async function inLanguage(statements: Statements, mail: Mail): Promise<Omit<SentMail, "atMs">> {
	const { subject: _, paragraphs: __, network: ___, asked, ...rest } = mail;
	const [person] = await statements<{ language: string | null }>`
		select language from console_user where email = ${mail.to.toLowerCase()}::text`;
	const language = isLanguage(person?.language) ? person.language : asked;
	return { ...rest, ...mailText(mail, language ?? ENGLISH) };
}

export function mailText({ subject, paragraphs }: Pick<Mail, "subject" | "paragraphs">, language: Language) {
	const written = paragraphs.map((one) => (typeof one === "string" ? one : translate(language, one)));
	return { subject: translate(language, subject), text: `${written.join("\n\n")}\n` };
}

/** Counts a mail to this mailbox; false above a limit. Each kind of mail has its own counters. */
async function mayGet(statements: Statements, { to, subject, isWayIn, isAskedFor }: Mail): Promise<boolean> {
	const what = `${englishText(subject)} ${mailboxWithoutTag(to)}`;
	const hour = await countWithin(statements, "mails an hour", what, HOUR_MS);
	if (hour.count > (isAskedFor ? ASKED_FOR_HOUR_MAX : MAILS_HOUR_MAX)) return false;
	if (isWayIn) return true;
	// Counts towards the day only those mails that the hourly limit allows.
	const day = await countWithin(statements, "mails a day", what, 24 * HOUR_MS);
	return day.count <= (isAskedFor ? ASKED_FOR_DAY_MAX : MAILS_DAY_MAX);
}

function createOutboxMailer({ clock, log, statements }: MailerDeps): Mailer {
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
				log.error("a mail could not be sent", { subject: englishText(mail.subject), error }),
			),
		outbox: (to) => sent.filter((mail) => mail.to === to.toLowerCase()),
		stop() {},
	};
}
