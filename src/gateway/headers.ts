import type { Admission } from "../admission/admission.ts";
import type { Model } from "../catalog/model.ts";
import type { KeyEntry } from "../keys/key-entry.ts";
import type { RateLimitState } from "../limits/key-limits.ts";

/** Response header with the id of the model that answered; set if the request named a route. */
export const SERVED_MODEL_HEADER = "x-served-model";

/** Also the `param` of a 415 error if the body's compression is refused, not its content type. */
export const CODING_HEADER = "content-encoding";

/** Cache: headers of responses without `x-ignored-parameters`, by content type. */
const PLAIN = new Map<string, Headers>();

/** Headers of a response. The next call returns the same object with other values, so the caller must copy it. */
export function answerHeaders(requestId: string, ignored: readonly string[], contentType: string): Headers {
	let plain = PLAIN.get(contentType);
	if (plain === undefined) {
		plain = new Headers({
			"content-type": contentType,
			"cache-control": "no-store",
			"x-content-type-options": "nosniff",
			"x-accel-buffering": "no",
		});
		PLAIN.set(contentType, plain);
	}
	const names = ignoredHeader(ignored);
	const headers = names === undefined ? plain : new Headers(plain);
	headers.set("x-request-id", requestId);
	if (names !== undefined) headers.set("x-ignored-parameters", names);
	return headers;
}

const HEADER_NAMES_MAX = 20;

/** Value of `x-ignored-parameters`: up to 20 names that are safe in a header, then the number of further names. */
function ignoredHeader(ignored: readonly string[]): string | undefined {
	if (ignored.length === 0) return undefined;
	const shown = ignored.filter((name) => /^[A-Za-z0-9_.-]{1,64}$/.test(name)).slice(0, HEADER_NAMES_MAX);
	const more = ignored.length - shown.length;
	return [...shown, ...(more > 0 ? [`+${more}`] : [])].join(", ");
}

export const jsonHeaders = (requestId: string): Record<string, string> => ({
	"content-type": "application/json",
	"cache-control": "no-store",
	"x-content-type-options": "nosniff",
	"x-request-id": requestId,
});

const rateHeaders = (what: string) =>
	[`x-ratelimit-limit-${what}`, `x-ratelimit-remaining-${what}`, `x-ratelimit-reset-${what}`] as const;
const REQUEST_HEADERS = rateHeaders("requests");
const TOKEN_HEADERS = rateHeaders("tokens");
export const RATE_HEADERS = [...REQUEST_HEADERS, ...TOKEN_HEADERS];

/** Sets OpenAI's rate-limit headers from the key's limits that are closest to exhaustion, if it has any. */
export function setRateHeaders(
	response: Response,
	admission: Pick<Admission, "othersOf" | "rateLimitState">,
	key: KeyEntry,
	model: Model | undefined,
): void {
	const others = admission.othersOf(key, model);
	setOf(response, REQUEST_HEADERS, admission.rateLimitState(key, others, "rate"));
	setOf(response, TOKEN_HEADERS, admission.rateLimitState(key, others, "tokens"));
}

function setOf(response: Response, names: typeof REQUEST_HEADERS, state: RateLimitState | null): void {
	if (state === null) return;
	// Read as late as possible, because a Response allocates its headers when they are first read.
	const { headers } = response;
	headers.set(names[0], String(state.limit));
	headers.set(names[1], String(state.remaining));
	headers.set(names[2], durationText(state.resetMs));
}

export function dropRateHeaders(headers: Headers): void {
	for (const name of RATE_HEADERS) headers.delete(name);
}

/** Duration in OpenAI's format: `0s`, `850ms`, `6s`, `1m30s`. */
function durationText(ms: number): string {
	if (ms > 0 && ms < 1_000) return `${Math.ceil(ms)}ms`;
	const seconds = Math.ceil(ms / 1_000);
	return seconds < 60 ? `${seconds}s` : `${Math.floor(seconds / 60)}m${seconds % 60}s`;
}
