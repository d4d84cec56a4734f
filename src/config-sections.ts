import type { EnvironmentReader } from "./base/environment-reader.ts";

type Note = (problem: string) => void;

const TRANSFER_DETAILS_LENGTH_MAX = 2_000;

export function readStripe(read: EnvironmentReader) {
	const secretKey = read.text("STRIPE_SECRET_KEY");
	// Two secrets are valid during a rotation.
	const webhookSecrets = Object.freeze(read.list("STRIPE_WEBHOOK_SECRET"));
	// Null: Stripe's public API.
	const apiBase = withoutSlash(read.url("STRIPE_API_BASE", ["http:", "https:"]));
	return secretKey === null ? null : Object.freeze({ secretKey, webhookSecrets, apiBase });
}

export function readMail(read: EnvironmentReader, note: Note) {
	const smtpUrl = read.url("SMTP_URL", ["smtp:", "smtps:"]);
	const address = /^(?=.{3,320}$)[^@]*[^@\s]@[^@\s]+$/;
	const from = read.pattern("MAIL_FROM", address, "must be one line with an address");
	if (smtpUrl === null) return null;
	if (from === null) note("MAIL_FROM is required with SMTP_URL");
	return Object.freeze({ smtpUrl, from: from ?? "" });
}

function oauthClient(name: string, clientId: string | null, clientSecret: string | null, note: Note) {
	if (clientId !== null && clientSecret !== null) return Object.freeze({ clientId, clientSecret });
	if (clientId !== clientSecret) note(`${name}_ID and ${name}_SECRET must be set together`);
	return null;
}

export function readSignIn(read: EnvironmentReader, note: Note) {
	return Object.freeze({
		github: oauthClient("GITHUB_CLIENT", read.text("GITHUB_CLIENT_ID"), read.text("GITHUB_CLIENT_SECRET"), note),
		google: oauthClient("GOOGLE_CLIENT", read.text("GOOGLE_CLIENT_ID"), read.text("GOOGLE_CLIENT_SECRET"), note),
	});
}

/** Reads the bank details. `\n` also means a line break, for systems whose variables cannot contain one. */
export function readTransferDetails(read: EnvironmentReader, note: Note): string | null {
	const text = read.text("TRANSFER_DETAILS");
	if (text === null) return null;
	const lines = text.replaceAll("\\n", "\n").replaceAll("\r\n", "\n").trim();
	if (lines.length > TRANSFER_DETAILS_LENGTH_MAX || /[^\P{Cc}\n]/u.test(lines))
		note(
			`TRANSFER_DETAILS must be plain text of at most ${TRANSFER_DETAILS_LENGTH_MAX} characters without control characters`,
		);
	return lines === "" ? null : lines;
}

export function withoutSlash(url: string | null): string | null {
	return url === null ? null : url.replace(/\/+$/, "");
}
