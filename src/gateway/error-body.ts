import { CreditFault } from "../admission/credit-fault.ts";
import { errorText } from "../base/error-record.ts";
import { Fault, type FaultCode, type FaultDetail } from "../base/fault.ts";
import { ENGLISH, type Language } from "../base/language.ts";
import { translateAll } from "../base/translate.ts";
import { isUnstorableText } from "../db/statements.ts";
import type { CreditShortage } from "../money/credit-shortage.ts";
import { formatUsd } from "../money/nano-usd.ts";
import { UpstreamFailure, type UpstreamFailureKind } from "../upstream/call/failure.ts";
import { CODING_HEADER, jsonHeaders } from "./headers.ts";

const TYPES: Readonly<Record<number, string>> = {
	401: "authentication_error",
	402: "insufficient_quota",
	403: "permission_error",
	429: "rate_limit_error",
};

const errors = <Code extends FaultCode>(status: number, ...codes: readonly Code[]) => {
	const type = TYPES[status] ?? (status < 500 ? "invalid_request_error" : "server_error");
	return Object.fromEntries(codes.map((code) => [code, { status, type }])) as Record<Code, ErrorKind>;
};
interface ErrorKind {
	readonly status: number;
	readonly type: string;
}

export const ERRORS: Readonly<Record<FaultCode, ErrorKind>> = {
	...errors(400, "invalid_request", "context_length_exceeded", "unsupported_parameter"),
	...errors(401, "missing_api_key", "invalid_api_key", "api_key_revoked", "api_key_expired", "session_required"),
	...errors(402, "top_up_required", "insufficient_quota", "key_cap_exceeded", "project_cap_exceeded"),
	...errors(403, "reauthentication_required", "second_factor_required", "forbidden", "sign_in_required"),
	...errors(403, "model_not_allowed", "account_suspended", "project_archived", "read_only_key"),
	...errors(404, "model_not_found", "unsupported_mode", "not_found"),
	...errors(405, "method_not_allowed"),
	...errors(408, "request_timeout"),
	...errors(409, "conflict"),
	...errors(412, "precondition_failed"),
	...errors(413, "payload_too_large"),
	...errors(415, "unsupported_media_type"),
	...errors(416, "range_not_satisfiable"),
	...errors(422, "idempotency_mismatch", "unprocessable_request"),
	...errors(429, "rate_limit_exceeded"),
	...errors(500, "internal_error"),
	...errors(502, "upstream_error"),
	...errors(503, "overloaded", "service_unavailable"),
	...errors(504, "upstream_timeout"),
};
/** Statuses that SDKs would retry although a retry fails again; the header `x-should-retry: false` prevents it. */
const FINAL: ReadonlySet<number> = new Set([402, 409]);

export const CLIENT_LEFT_STATUS = 499;

export function errorBody(fault: Fault, language: Language = ENGLISH) {
	const { type } = ERRORS[fault.code];
	const amounts = fault instanceof CreditFault ? amountsOf(fault.shortage) : undefined;
	const message = translateAll(language, fault.texts);
	return { error: { message, type, param: fault.param, code: fault.code, ...amounts } };
}

/** Fields of a 402's `error`: amounts as decimal US dollars, and the largest affordable `max_tokens`. */
const amountsOf = ({ availableNanoUsd, heldNanoUsd, requiredNanoUsd, affordableMaxTokens }: CreditShortage) => ({
	available_usd: formatUsd(availableNanoUsd),
	held_usd: formatUsd(heldNanoUsd),
	required_usd: formatUsd(requiredNanoUsd),
	...(affordableMaxTokens === null ? {} : { affordable_max_tokens: affordableMaxTokens }),
});

export const faultStatus = (fault: Fault): number => ERRORS[fault.code].status;

/** True if a retry would fail again. A 503 without `retry-after` means that the model is not offered. */
export function isRetryUseless(fault: Fault): boolean {
	if (fault.retryAfterS !== undefined) return false;
	return fault.isFinal || FINAL.has(faultStatus(fault)) || fault.code === "service_unavailable";
}

export function errorResponse(fault: Fault, requestId: string, language: Language = ENGLISH): Response {
	const { status } = ERRORS[fault.code];
	const headers = jsonHeaders(requestId);
	if (fault.retryAfterS !== undefined) headers["retry-after"] = String(fault.retryAfterS);
	else if (isRetryUseless(fault)) headers["x-should-retry"] = "false";
	if (status === 415 && fault.param === CODING_HEADER) headers["accept-encoding"] = "identity";
	if (status === 401) headers["www-authenticate"] = "Bearer";
	return new Response(JSON.stringify(errorBody(fault, language)), { status, headers });
}

/** Converts any thrown value to a Fault. The public text never repeats a text of an upstream server. */
export function toFault(error: unknown): Fault {
	if (error instanceof Fault) return error;
	if (error instanceof UpstreamFailure) return faultOfUpstream(error);
	if (isUnstorableText(error))
		return new Fault(
			"invalid_request",
			"The request contains a character that cannot be stored, such as U+0000. Remove it.",
			{ cause: error },
		);
	return new Fault(
		"internal_error",
		"Internal error. Please try again, and contact the operator with the request ID if it persists.",
		{ cause: error, private: errorText(error) },
	);
}

/** Error for requests that are still waiting when the process stops. */
export function stoppingFault(detail: { private?: string; cause?: unknown } = {}): Fault {
	return new Fault("service_unavailable", "The service is restarting. Please try again.", {
		...detail,
		retryAfterS: 1,
	});
}

/** Omits the model server's error text, which may repeat the prompt. The log contains it under the request id. */
function faultOfUpstream(failure: UpstreamFailure): Fault {
	const { kind, status, param, retryAfterS } = failure;
	const detail = { private: `upstream ${kind} ${status ?? ""}`.trimEnd(), cause: failure };
	if (kind === "stopping") return stoppingFault(detail);
	if (kind === "rejected") {
		const texts =
			param === null
				? [{ id: "The model server refused the request." }, { id: hintOf(failure) }]
				: [{ id: "The model server refused the value of `{param}`.", values: { param } }];
		return new Fault("invalid_request", texts, { ...detail, param });
	}
	const [code, text, more] = UPSTREAM_FAULTS[kind] ?? ["upstream_error", "The model server failed to respond."];
	return new Fault(code, text, { ...detail, ...more, ...(retryAfterS === undefined ? {} : { retryAfterS }) });
}

const UPSTREAM_FAULTS: Partial<Record<UpstreamFailureKind, readonly [FaultCode, string, FaultDetail?]>> = {
	context_length: [
		"context_length_exceeded",
		"The prompt and `max_tokens` exceed the model's context length. Shorten the prompt or lower `max_tokens`.",
		{ param: "messages" },
	],
	unanswerable: [
		"upstream_error",
		"Two servers of this model failed on this request twice but answer others. Do not retry it; change the request.",
		{ isFinal: true },
	],
	misconfigured: [
		"service_unavailable",
		"The servers of this model refuse the service's requests. The operator must correct this; a retry does not help.",
	],
	timeout: ["upstream_timeout", "The model server did not respond in time."],
	busy: ["overloaded", "The servers of this model are busy. Please try again.", { retryAfterS: 2 }],
	crowded: [
		"overloaded",
		"The service has no memory for an answer of this size right now. Request less output, or try again.",
		{ retryAfterS: 2 },
	],
	aborted: ["request_timeout", "The request was cancelled."],
};

/** Hints for the client by words in the model server's message. Fixed texts, so that no server text is passed on. */
const HINTS: readonly (readonly [RegExp, string])[] = [
	[/\broles\b|role not supported|message role/i, "This model may not support the order or kind of roles."],
	[/\btools?\b|tool_choice|function.call/i, "This model may not support tools, or not in this form."],
	[/\bimages?\b|\baudio\b|\bvideo\b|multi-?modal/i, "An image, audio or video input may be invalid or unsupported."],
	[/json.?schema|grammar|guided|response_format/i, "The schema in `response_format` may be invalid or unsupported."],
	[/chat.?template/i, "The model's chat template may not support these messages."],
	[/logprob|temperature|\btop_[pk]\b|penalty|\bstop\b|\bseed\b/i, "A sampling parameter may be out of range."],
];

function hintOf({ private: message }: UpstreamFailure): string {
	// pydantic repeats the client's request after `input`, so only the text before `input` is searched for words.
	const [said = ""] = message.split(/\binput(?:_value)?["'\\]*\s*[:=]/, 1);
	const [, hint] = HINTS.find(([words]) => words.test(said)) ?? [];
	return hint ?? "Check the request against the model's documentation.";
}
