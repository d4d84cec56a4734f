import type { Config } from "../../config.ts";
import { createSmtpTransport } from "../../console/mail/smtp-transport.ts";
import { type Finding, findingsOf, reasonOf } from "./finding.ts";

const TIMEOUT_MS = 8_000;

/** What to do, by nodemailer's own codes. */
const TODO: Readonly<Record<string, string>> = {
	EAUTH: "Set user and password in SMTP_URL right (percent-encoded).",
	EDNS: "Set the host in SMTP_URL right.",
	ETLS: "Use smtps:// for TLS from the start (often port 465), smtp:// for STARTTLS (587).",
	ETIMEDOUT: "Open the way to that host and port; many networks close port 25.",
};
const TODO_ELSE = "Set host, port and scheme in SMTP_URL right: smtps:// is TLS from the start, smtp:// is not.";

/** Connects to the mail server, greets it and signs in; sends nothing. */
export async function checkMail({ smtpUrl, production }: Config): Promise<readonly Finding[]> {
	const found = findingsOf("mail");
	if (smtpUrl === null) {
		if (production)
			found.warn(
				"SMTP_URL is not set: nobody can sign up with a password, be invited or be warned of low credit",
				"Set SMTP_URL and MAIL_FROM.",
			);
		else found.note("SMTP_URL is not set: no mail is sent, only the demo shows what it would say");
		return found.list;
	}
	const { hostname, port, protocol } = new URL(smtpUrl);
	const server = `${hostname}${port === "" ? "" : `:${port}`}`;
	const transport = createSmtpTransport(smtpUrl, TIMEOUT_MS);
	try {
		await transport.verify();
		found.ok(`the mail server ${server} answers (${protocol.slice(0, -1)})`);
	} catch (error) {
		const { code } = error as { code?: unknown };
		found.broken(`the mail server ${server} does not take us: ${reasonOf(error)}`, TODO[String(code)] ?? TODO_ELSE);
	} finally {
		transport.close();
	}
	return found.list;
}
