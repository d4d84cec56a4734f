import Stripe from "stripe";
import { connectStripe } from "../../billing/stripe-client.ts";
import type { Config } from "../../config.ts";
import { type Finding, findingsOf, reasonOf } from "./finding.ts";

const WEBHOOK_PATH = "/api/stripe/webhook";
/** Without one of them a payment, a refund or a dispute would not be heard of. */
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
const TIMEOUT_MS = 8_000;
const ENDPOINTS_MAX = 100;
const OPTIONS = { timeout: TIMEOUT_MS, maxNetworkRetries: 0 } as const;

/** Whether Stripe knows the key, and would tell the service of payments. Reads only. */
export async function checkPayments(config: Config): Promise<readonly Finding[]> {
	const found = findingsOf("payments");
	const { stripeSecretKey: secretKey, stripeApiBase: apiBase, production } = config;
	if (secretKey === null) {
		found.note("STRIPE_SECRET_KEY is not set: top-ups are transfers that an operator confirms");
		return found.list;
	}
	if (config.stripeWebhookSecrets.length === 0)
		found.broken(
			"STRIPE_WEBHOOK_SECRET is not set: no payment by card would ever become credit",
			`Make a webhook at PUBLIC_URL${WEBHOOK_PATH} and set its signing secret.`,
		);
	if (production && /^(sk|rk)_test_/.test(secretKey))
		found.warn("STRIPE_SECRET_KEY is one of Stripe's test mode: cards are not charged", "Set the live key.");
	const stripe = connectStripe({ secretKey, apiBase });
	try {
		await stripe.balance.retrieve({}, OPTIONS);
		found.ok("Stripe takes the key");
	} catch (error) {
		if (error instanceof Stripe.errors.StripeAuthenticationError)
			found.broken(
				"Stripe refuses STRIPE_SECRET_KEY",
				"Set a key that is in force; they are rolled in Stripe's dashboard.",
			);
		else if (error instanceof Stripe.errors.StripePermissionError) found.ok("Stripe takes the key, a restricted one");
		else
			found.warn(
				`Stripe could not be asked from here: ${reasonOf(error)}`,
				`Let this machine reach ${new URL(apiBase ?? "https://api.stripe.com").host}: without it nobody can pay by card.`,
			);
		return found.list;
	}
	if (config.publicUrl !== null) await checkWebhook(stripe, `${config.publicUrl}${WEBHOOK_PATH}`, found);
	return found.list;
}

async function checkWebhook(stripe: Stripe, url: string, found: ReturnType<typeof findingsOf>): Promise<void> {
	const endpoints = await stripe.webhookEndpoints.list({ limit: ENDPOINTS_MAX }, OPTIONS).catch(() => undefined);
	if (endpoints === undefined) {
		found.note("this key may not read which webhooks there are");
		return;
	}
	const ours = endpoints.data.find((endpoint) => endpoint.url === url && endpoint.status === "enabled");
	if (ours === undefined) {
		found.warn(
			`Stripe has no webhook at ${url} in force`,
			"Make one, with the events that src/console/README.md lists.",
		);
		return;
	}
	const missing = EVENTS.filter((event) => !ours.enabled_events.includes(event) && !ours.enabled_events.includes("*"));
	if (missing.length === 0) found.ok(`Stripe's webhook at ${url} is in force`);
	else found.broken(`Stripe's webhook at ${url} leaves out ${missing.join(", ")}`, "Add these events to it.");
}
