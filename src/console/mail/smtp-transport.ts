import nodemailer, { type SendMailOptions } from "nodemailer";

/** Anything shorter stands in words by chance. */
const SECRET_CHARS_MIN = 4;

/** Of one mail from the connection to the last answer: who sends a line now and then is never silent, and never done. */
const WHOLE_MS = 60_000;

/**
 * A client of a mail server whose failures do not show its password: what a server says to a command that it does not know
 * is often the command itself, with user and password in it.
 */
export function createSmtpTransport(url: string, timeoutMs: number, wholeMs = WHOLE_MS) {
	const transport = nodemailer.createTransport({
		url,
		connectionTimeout: timeoutMs,
		greetingTimeout: timeoutMs,
		socketTimeout: timeoutMs,
	});
	const forms = formsOf(url);
	const failed = (error: unknown): never => {
		for (const name of ["message", "stack", "response"] as const) hide(error as Record<string, unknown>, name);
		throw error;
	};
	const hide = (error: Record<string, unknown>, name: string) => {
		const text = error[name];
		if (typeof text === "string") error[name] = forms.reduce((left, form) => left.replaceAll(form, "***"), text);
	};
	return {
		verify: () => transport.verify().catch(failed),
		send: (mail: SendMailOptions) =>
			transport.sendMail({ ...mail, signal: AbortSignal.timeout(wholeMs) }).catch(failed),
		close: () => transport.close(),
	};
}

/** The password as the commands of both usual ways to sign in have it, and as it is. */
function formsOf(url: string): readonly string[] {
	const { username, password } = new URL(url);
	const [user, secret] = [decodeURIComponent(username), decodeURIComponent(password)];
	const packed = (text: string) => Buffer.from(text).toString("base64");
	return secret.length < SECRET_CHARS_MIN ? [] : [packed(`\0${user}\0${secret}`), packed(secret), password, secret];
}
