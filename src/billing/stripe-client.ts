import Stripe from "stripe";
import { errorText } from "../base/error-record.ts";
import { Fault } from "../base/fault.ts";

/** Milliseconds for one request, until the last byte of its response. */
const CALL_MS = 20_000;
/** Retries within a call, which so takes at most 41 s. Jobs repeat calls that must succeed. */
const RETRIES_MAX = 1;

export interface StripeAddress {
	readonly secretKey: string;
	/** Address of a replacement for Stripe's API, for tests; null: Stripe. */
	readonly apiBase: string | null;
	/** Milliseconds for one request, for tests. */
	readonly callMs?: number;
}

/** Client of Stripe's API. `carry` replaces `fetch` in tests. */
export function connectStripe({ secretKey, apiBase, callMs = CALL_MS }: StripeAddress, carry?: typeof fetch): Stripe {
	const url = apiBase === null ? undefined : new URL(apiBase);
	return new Stripe(secretKey, {
		httpClient: Stripe.createFetchHttpClient(carry),
		timeout: callMs,
		maxNetworkRetries: RETRIES_MAX,
		telemetry: false,
		...(url === undefined
			? {}
			: {
					host: url.hostname,
					port: url.port === "" ? (url.protocol === "https:" ? 443 : 80) : Number(url.port),
					protocol: url.protocol === "https:" ? ("https" as const) : ("http" as const),
				}),
	});
}

/** Fault service_unavailable for a failed call. Stripe's own text is only logged. */
export function paymentServiceFault(error: unknown): Fault {
	if (error instanceof Fault) return error;
	return new Fault(
		"service_unavailable",
		"The payment provider did not respond. Nothing was charged. Please try again.",
		{ cause: error, private: errorText(error), retryAfterS: 5 },
	);
}

/** True if Stripe answered that it refuses the request, so that the request had no effect. */
export function isStripeRefusal(error: unknown): error is InstanceType<typeof Stripe.errors.StripeInvalidRequestError> {
	return (
		error instanceof Stripe.errors.StripeInvalidRequestError && (error.statusCode === 400 || error.statusCode === 404)
	);
}

export function isNotFound(error: unknown): error is InstanceType<typeof Stripe.errors.StripeInvalidRequestError> {
	return isStripeRefusal(error) && (error.statusCode === 404 || error.code === "resource_missing");
}
