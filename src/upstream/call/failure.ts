import { asArray, asObject, asText, type JsonObject, parseJson } from "../wire-value.ts";

export type UpstreamFailureKind =
	/** The address refused the connection, or the connection broke before a response. */
	| "unreachable"
	/** The response is not in the requested format: not JSON, or without choices. */
	| "unreadable"
	/** A deadline passed: for connecting, for the first event, for silence, or for the whole request. */
	| "timeout"
	/** The server is overloaded or not ready (429, 503, 529). */
	| "busy"
	/** The server failed: status 5xx, an error event, or finish reason `abort`. */
	| "failed"
	| "died"
	/** The server refuses the request as invalid (4xx); the customer must change the request. */
	| "rejected"
	/** The prompt exceeds the context length; the customer must shorten it. */
	| "context_length"
	/** Two replicas failed twice on this request and answer other requests; the customer must change the request. */
	| "unanswerable"
	/** The server refuses the gateway's key or credit, or does not know the model; the operator must act. */
	| "misconfigured"
	/** A batch line gave its place to a waiting request. It is sent again later. */
	| "yielded"
	/** The gateway's memory for long answers is full. */
	| "crowded"
	| "stopping"
	/** The client or the caller disconnected, so no server is at fault. */
	| "aborted";

/** A failed upstream call. Clients never see it: `gateway/error-body.ts` converts its kind to an error. */
export class UpstreamFailure extends Error {
	override readonly name = "UpstreamFailure" as const;
	readonly kind: UpstreamFailureKind;
	readonly status: number | undefined;
	/** Request field that the server named in a `rejected` failure, if the client sent that field. */
	readonly param: string | null;
	/** For the operator's log only: may contain text of the server, cut to 500 characters. */
	readonly private: string;
	/** Seconds after which a `busy` server requests the next attempt, within limits. */
	retryAfterS: number | undefined = undefined;
	/** True if a `context_length` failure counted the output limit too: without the limit the prompt may fit. */
	countsLimit = false;

	constructor(
		kind: UpstreamFailureKind,
		detail: { status?: number; param?: string | null; private: string; cause?: unknown },
	) {
		super(`upstream ${kind}`, detail.cause === undefined ? undefined : { cause: detail.cause });
		this.kind = kind;
		this.status = detail.status;
		this.param = detail.param ?? null;
		this.private = detail.private.slice(0, 500);
	}
}

/** Failure for a response that cannot be parsed; another replica may answer correctly. */
export function unreadableAnswer(detail: string): UpstreamFailure {
	return new UpstreamFailure("unreadable", { private: detail });
}

export function crashFailure(detail: string): UpstreamFailure {
	return new UpstreamFailure("died", { private: detail });
}

/** Failure for a response that reports an error or exceeds a size limit. */
export function serverFailure(detail: string): UpstreamFailure {
	return new UpstreamFailure("failed", { private: detail });
}

/** Failure for a wait that ends because this process stops. */
export function stoppingFailure(cause?: unknown): UpstreamFailure {
	return new UpstreamFailure("stopping", { private: "the process stops", cause });
}

interface UpstreamError {
	readonly message: string;
	readonly type: string;
	/** The error's code as text, because some servers send a number. */
	readonly code: string;
	readonly param: string | null;
}

/** Request fields that an error may name to the client. Other names are internal to the model server. */
const REQUEST_FIELDS: ReadonlySet<string> = new Set(
	(
		"messages model frequency_penalty presence_penalty temperature top_p top_k min_p repetition_penalty seed stop n " +
		"logprobs top_logprobs logit_bias response_format tools tool_choice parallel_tool_calls functions function_call " +
		"max_tokens max_completion_tokens reasoning_effort stream stream_options user prompt suffix echo best_of input " +
		"encoding_format dimensions query documents top_n language response_format size quality modalities audio"
	).split(" "),
);

/** Members of these request fields, so that an error can name the exact path. */
const MEMBERS: ReadonlySet<string> = new Set(
	(
		"role content type text name tool_calls tool_call_id function arguments description parameters properties required " +
		"strict json_schema schema image_url url detail input_audio data format file refusal"
	).split(" "),
);
const PLACE_STEPS_MAX = 12;

const CONTEXT_TYPES: ReadonlySet<string> = new Set(["exceed_context_size_error", "context_length_exceeded"]);

/** Matches errors for a prompt above the context length: vLLM, SGLang, llama.cpp, Ollama, TGI, hosted services. */
const CONTEXT_TEXT =
	/context.?(?:length|size|window)|maximum context|maximum (?:model|prompt|sequence) length|max_model_len|longer than the model|prompt is too long|input (?:length|is too long)|too large to process|model token limit|`inputs` (?:tokens|must have less)|exceeds? the (?:available|maximum) (?:context|number of tokens)/i;

/** Matches errors about an output limit that does not fit into the context after the prompt. */
const LIMIT_TEXT = /(?:in|for) the completion|output tokens|max_(?:completion_)?tokens/i;

/** Codes and types that mean: the operator has no credit left at the provider. */
const CREDIT_TYPES: ReadonlySet<string> = new Set([
	"insufficient_quota",
	"insufficient_balance",
	"insufficient_credits",
	"billing_hard_limit_reached",
	"billing_not_active",
]);
/** Texts of a 429 with the same meaning. Texts of other statuses are not searched, since they may repeat the prompt. */
const CREDIT_TEXT =
	/exceeded your current quota|insufficient (?:quota|balance|credit)|check your (?:plan and )?billing/i;

/** Reads an error body or event in any format: nested, flat, in a list, FastAPI's `detail`, or a plain string. */
function readUpstreamError(value: unknown): UpstreamError {
	const outer = asObject(asArray(value)?.[0] ?? value);
	const inner = outer?.error ?? outer?.detail ?? outer ?? value;
	const text = asText(inner);
	if (text !== undefined) return { message: text, type: asText(outer?.error_type) ?? "", code: "", param: null };
	const details = asArray(inner);
	if (details !== undefined) return errorOfDetails(details);
	const error = asObject(inner);
	return {
		message: asText(error?.message) ?? "",
		type: asText(error?.type) ?? "",
		code: error === undefined ? "" : codeText(error),
		param: knownField(error?.param),
	};
}

function codeText(error: JsonObject): string {
	const code = error.code ?? error.http_status_code;
	return typeof code === "string" || typeof code === "number" ? String(code) : "";
}

/** FastAPI's format: `detail: [{loc: ["body", "temperature"], msg}]`. */
function errorOfDetails(details: readonly unknown[]): UpstreamError {
	const first = asObject(details[0]);
	const path = asArray(first?.loc) ?? [];
	const place = path[0] === "body" ? path.slice(1) : path;
	return { message: asText(first?.msg) ?? "", type: "", code: "", param: knownPlace(place.map(String)) };
}

/** Reads a request field's path, written `messages[0].content` or `messages.0.content`. */
function knownField(value: unknown): string | null {
	const text = asText(value);
	return text === undefined ? null : knownPlace(text.split(/[.[\]]+/, PLACE_STEPS_MAX));
}

/** Writes a path in OpenAI's notation, up to the first name that is not part of OpenAI's interface. */
function knownPlace([field, ...steps]: readonly string[]): string | null {
	if (field === undefined || !REQUEST_FIELDS.has(field)) return null;
	let place = field;
	for (const step of steps.slice(0, PLACE_STEPS_MAX)) {
		if (/^\d{1,5}$/.test(step)) place += `[${step}]`;
		else if (MEMBERS.has(step)) place += `.${step}`;
		else break;
	}
	return place;
}

/** Kind of failure that an error's text or codes show, for any status: too long a prompt, or no provider credit. */
function kindOfWords({ type, code, message }: UpstreamError, status?: number): UpstreamFailureKind | undefined {
	if (CONTEXT_TYPES.has(type) || CONTEXT_TYPES.has(code) || CONTEXT_TEXT.test(message)) return "context_length";
	const isUnpaid = CREDIT_TYPES.has(type) || CREDIT_TYPES.has(code) || (status === 429 && CREDIT_TEXT.test(message));
	return isUnpaid ? "misconfigured" : undefined;
}

/** Converts a status to a failure. `requestsFault` matches the texts of a 500 that blame the request. */
export function failureOfStatus(status: number, bodyText: string, requestsFault?: RegExp): UpstreamFailure {
	const error = readUpstreamError(parseJson(bodyText) ?? bodyText);
	const detail = { status, private: `status ${status}: ${bodyText}` };
	const words = status >= 400 ? kindOfWords(error, status) : undefined;
	const blamed = status === 500 && requestsFault?.test(error.message) ? "rejected" : kindOfStatus(status);
	const kind = words ?? blamed;
	const failure = new UpstreamFailure(kind, kind === "rejected" ? { ...detail, param: error.param } : detail);
	failure.countsLimit = kind === "context_length" && LIMIT_TEXT.test(error.message);
	return failure;
}

function kindOfStatus(status: number): UpstreamFailureKind {
	if (status === 429 || status === 503 || status === 529) return "busy";
	// 402: the operator lacks credit at the provider. 3xx is not followed: it would reveal prompt and key.
	if ((status >= 300 && status < 400) || [401, 402, 403, 404, 405, 407].includes(status)) return "misconfigured";
	if (status === 408 || status === 424 || status === 499 || status >= 500) return "failed";
	return status >= 400 ? "rejected" : "unreadable";
}

/** HTTP status that corresponds to an error's type or code. */
const STATUSES: Readonly<Record<string, number>> = {
	invalid_request_error: 400,
	BadRequestError: 400,
	rate_limit_error: 429,
	rate_limit_exceeded: 429,
	overloaded_error: 529,
};

/** Failure for an `error` in a response with status 200: `failed`, unless its text, type or code shows another kind. */
export function failureOfError(value: unknown): UpstreamFailure {
	const error = readUpstreamError(value);
	const { code, type, param } = error;
	const detail = { private: `error in the answer: ${type} ${code} ${error.message}` };
	const status = STATUSES[type] ?? STATUSES[code] ?? Number(code);
	const kind = kindOfWords(error) ?? (status >= 400 && status < 600 ? kindOfStatus(status) : "failed");
	if (kind === "rejected") return new UpstreamFailure(kind, { ...detail, status: 400, param });
	return new UpstreamFailure(kind, kind === "busy" ? { ...detail, status } : detail);
}

/**
 * True if the body is an error, nested or flat: `"object": "error"`, or a `message` without an answer. Not an error:
 * `"error": null`, `"error": ""` and `"message": "Success"`, which some servers add to each answer.
 */
export function isErrorBody(body: JsonObject): boolean {
	if (body.error || body.object === "error") return true;
	if (typeof body.message !== "string") return false;
	return typeof body.text !== "string" && ![body.choices, body.data, body.results].some(Array.isArray);
}

/** SDKs wait at most this many seconds. */
const RETRY_AFTER_S_MAX = 60;

/** Seconds of `retry-after`, given as a number or as a date by the server's clock; undefined without the header. */
export function readRetryAfter(headers: Headers): number | undefined {
	const said = headers.get("retry-after") ?? "";
	const date = (Date.parse(said) - Date.parse(headers.get("date") ?? "")) / 1000;
	const seconds = said.trim() === "" ? Number.NaN : Number.isNaN(Number(said)) ? date : Number(said);
	return Number.isNaN(seconds) ? undefined : Math.min(Math.max(Math.ceil(seconds), 1), RETRY_AFTER_S_MAX);
}

const REFUSED: ReadonlySet<string> = new Set(["ECONNREFUSED", "ConnectionRefused", "ENOTFOUND"]);

/** True if the connection was refused because no process listens at the address. */
export const isRefused = (error: unknown): boolean => REFUSED.has(connectionErrorCode(error));

export const connectionErrorCode = (error: unknown): string => asText(asObject(error)?.code) ?? "";
