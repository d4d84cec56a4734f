import Stripe from "stripe";
import { connectStripe } from "../../billing/stripe-client.ts";
import type { Config } from "../../config.ts";
import { createSmtpTransport } from "../../console/mail/smtp-transport.ts";
import { createFindings, errorReason, type Finding, type Findings } from "./finding.ts";

const TIMEOUT_MS = 8_000;
const WEBHOOK_PATH = "/api/stripe/webhook";
/** Stripe events that the webhook must receive. Without one, payments, refunds or disputes are not booked. */
const EVENTS = [
	"checkout.session.completed",
	"checkout.session.async_payment_succeeded",
	"checkout.session.async_payment_failed",
	"checkout.session.expired",
	"payment_intent.succeeded",
	"payment_intent.payment_failed",
	"charge.refunded",
	"charge.dispute.created",
	"charge.dispute.updated",
	"charge.dispute.closed",
	"charge.dispute.funds_withdrawn",
	"charge.dispute.funds_reinstated",
];

/** Connects to the mail server and signs in, but sends no mail. */
export async function checkMail({ mail, production }: Pick<Config, "mail" | "production">) {
	const found = createFindings("mail");
	const none = "SMTP_URL is not set: sign-up by password, invitations and low-credit warnings do not work";
	if (mail === null) {
		if (production) found.warn(none, "Set SMTP_URL and MAIL_FROM.");
		else found.note(none);
		return found.list;
	}
	const server = `the mail server ${new URL(mail.smtpUrl).host}`;
	const transport = createSmtpTransport(mail.smtpUrl, TIMEOUT_MS);
	try {
		await transport.verify();
		found.ok(`${server} accepts the login`);
	} catch (error) {
		found.broken(
			`${server} refuses the login: ${errorReason(error)}`,
			"Correct SMTP_URL: host, port, user and percent-encoded password. smtps:// starts with TLS, smtp:// does not.",
		);
	} finally {
		transport.close();
	}
	return found.list;
}

/** Checks that Stripe accepts the key and sends its events to this service. Read-only. */
export async function checkPayments({
	stripe: settings,
	publicUrl,
	production,
}: Pick<Config, "stripe" | "publicUrl" | "production">): Promise<readonly Finding[]> {
	const found = createFindings("payments");
	if (settings === null) {
		found.note("STRIPE_SECRET_KEY is not set: only bank transfers are possible, which an operator confirms");
		return found.list;
	}
	if (settings.webhookSecrets.length === 0)
		found.broken(
			"STRIPE_WEBHOOK_SECRET is not set: no card payment becomes credit",
			"Set the webhook's signing secret.",
		);
	if (production && /^(sk|rk)_test_/.test(settings.secretKey))
		found.warn("STRIPE_SECRET_KEY is a test key: cards are not charged", "Set the live key.");
	const stripe = connectStripe({ ...settings, callMs: TIMEOUT_MS });
	try {
		await stripe.balance.retrieve();
		found.ok("Stripe accepts the key");
	} catch (error) {
		if (error instanceof Stripe.errors.StripePermissionError) found.ok("Stripe accepts the key, a restricted one");
		else {
			const isRefused = error instanceof Stripe.errors.StripeAuthenticationError;
			if (isRefused) found.broken("Stripe refuses STRIPE_SECRET_KEY", "Set a valid key.");
			else
				found.warn(
					`Stripe does not answer: ${errorReason(error)}`,
					"Allow connections to Stripe: otherwise card payments do not work.",
				);
			return found.list;
		}
	}
	if (publicUrl !== null) await checkWebhook(stripe, `${publicUrl}${WEBHOOK_PATH}`, found);
	return found.list;
}

async function checkWebhook(stripe: Stripe, url: string, found: Findings): Promise<void> {
	const endpoints = await stripe.webhookEndpoints.list({ limit: 100 }).catch(() => undefined);
	if (endpoints === undefined) return found.note("this key cannot read the webhooks of Stripe");
	const ours = endpoints.data.find((endpoint) => endpoint.url === url && endpoint.status === "enabled");
	if (ours === undefined)
		return found.warn(
			`Stripe has no enabled webhook at ${url}`,
			"Create one with the events listed in src/console/README.md.",
		);
	const sent = ours.enabled_events;
	const missing = EVENTS.filter((event) => !sent.includes(event) && !sent.includes("*"));
	if (missing.length === 0) found.ok(`Stripe's webhook at ${url} is enabled`);
	else
		found.broken(
			`Stripe's webhook at ${url} lacks the events ${missing.join(", ")}`,
			"Add these events to the webhook.",
		);
}
