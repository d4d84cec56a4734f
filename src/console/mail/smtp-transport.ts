import nodemailer, { type SendMailOptions } from "nodemailer";

/** Shorter passwords are not masked in errors, because they occur in ordinary text by chance. */
const SECRET_CHARS_MIN = 4;

/** Deadline of a mail, from connecting to the last reply: a slow server may never exceed the idle timeout. */
const WHOLE_MS = 60_000;

/** SMTP client that removes the password from errors: servers often quote the failed command. */
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

function formsOf(url: string): readonly string[] {
	const { username, password } = new URL(url);
	const [user, secret] = [decodeURIComponent(username), decodeURIComponent(password)];
	const packed = (text: string) => Buffer.from(text).toString("base64");
	return secret.length < SECRET_CHARS_MIN ? [] : [packed(`\0${user}\0${secret}`), packed(secret), password, secret];
}
