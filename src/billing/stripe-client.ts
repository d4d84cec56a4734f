import Stripe from "stripe";
import { errorText } from "../base/error-record.ts";
import { Fault } from "../base/fault.ts";

/** Of a request, from its first byte to its answer's last one: who answers a byte a second has not answered. */
const CALL_MS = 20_000;
/** With it a call has an end after 41 s at most. What must go on is repeated by its own job. */
const RETRIES_MAX = 1;

export interface StripeAddress {
	readonly secretKey: string;
	/** Another address of Stripe's interface, for tests. */
	readonly apiBase: string | null;
	/** Another limit of a request, for tests. */
	readonly callMs?: number;
}

/** A client of Stripe's interface, or of one that stands in for it. `fetch`: for tests, what carries its requests. */
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

/** Stripe's own words stay in the log. */
export function paymentServiceFault(error: unknown): Fault {
	if (error instanceof Fault) return error;
	return new Fault(
		"service_unavailable",
		"The payment service did not answer. Nothing was charged. Please try again.",
		{
			cause: error,
			private: errorText(error),
			retryAfterS: 5,
		},
	);
}

/** Stripe has understood the request and refuses it: nothing came of it. */
export function isRefused(error: unknown): error is InstanceType<typeof Stripe.errors.StripeInvalidRequestError> {
	return (
		error instanceof Stripe.errors.StripeInvalidRequestError && (error.statusCode === 400 || error.statusCode === 404)
	);
}

export function isGone(error: unknown): error is InstanceType<typeof Stripe.errors.StripeInvalidRequestError> {
	return isRefused(error) && (error.statusCode === 404 || error.code === "resource_missing");
}
