import { asArray, asObject, asText, type JsonObject, parseJson } from "../wire-value.ts";

export type UpstreamFailureKind =
	/** The address takes no connection, or the connection broke before an answer. */
	| "unreachable"
	/** The answer is not what was requested: no JSON, no choices. */
	| "unreadable"
	/** The deadline for connecting, the first event, silence or the whole request passed. */
	| "timeout"
	/** The server is overloaded or not ready (429, 503). */
	| "busy"
	/** A 5xx, an error event, an `abort` finish. */
	| "failed"
	| "died"
	/** The server refuses the request as malformed (4xx): the customer must change it. */
	| "rejected"
	/** The prompt does not fit the context: the customer must change it. */
	| "context_length"
	/** Two replicas failed on this request while they answered others: the customer must change it. */
	| "unanswerable"
	/** The server refuses our credentials or does not know the model: the operator must act. */
	| "misconfigured"
	/** A batch line yielded its place to a waiting request; it is sent again later. */
	| "yielded"
	/** This process had no memory for such a long answer next to those that it holds. */
	| "crowded"
	| "stopping"
	/** The client or the calling part left; no server is at fault. */
	| "aborted";

/** A failure of an upstream call. It is never shown as it is: `gateway/error-body.ts` maps the kind. */
export class UpstreamFailure extends Error {
	override readonly name = "UpstreamFailure" as const;
	readonly kind: UpstreamFailureKind;
	readonly status: number | undefined;
	/** The request field that a `rejected` concerns, if the upstream named a field that the client sent. */
	readonly param: string | null;
	/** For the restricted log: may hold upstream text, cut to 500 characters. */
	readonly private: string;

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

/** Makes the failure of an answer without sense; another replica may do better. */
export function unreadable(detail: string): UpstreamFailure {
	return new UpstreamFailure("unreadable", { private: detail });
}

export function died(detail: string): UpstreamFailure {
	return new UpstreamFailure("died", { private: detail });
}

/** Makes the failure of an answer that reports an error or passes a limit. */
export function failed(detail: string): UpstreamFailure {
	return new UpstreamFailure("failed", { private: detail });
}

/** Makes the failure of a wait that the stop of this process ends. */
export function stopping(cause?: unknown): UpstreamFailure {
	return new UpstreamFailure("stopping", { private: "the process stops", cause });
}

interface UpstreamError {
	readonly message: string;
	readonly type: string;
	/** Text; numbers are converted. */
	readonly code: string;
	readonly param: string | null;
}

/** Request fields that a failure may name to the client. Any other name would be internal to the server. */
const REQUEST_FIELDS: ReadonlySet<string> = new Set(
	(
		"messages model frequency_penalty presence_penalty temperature top_p top_k min_p repetition_penalty seed stop n " +
		"logprobs top_logprobs logit_bias response_format tools tool_choice parallel_tool_calls functions function_call " +
		"max_tokens max_completion_tokens reasoning_effort stream stream_options user prompt suffix echo best_of input " +
		"encoding_format dimensions query documents top_n language response_format size quality modalities audio"
	).split(" "),
);

/** Names inside these fields, so that a failure can name the exact place. */
const MEMBERS: ReadonlySet<string> = new Set(
	(
		"role content type text name tool_calls tool_call_id function arguments description parameters properties required " +
		"strict json_schema schema image_url url detail input_audio data format file refusal"
	).split(" "),
);
const PLACE_STEPS_MAX = 12;

const CONTEXT_TYPES: ReadonlySet<string> = new Set(["exceed_context_size_error", "context_length_exceeded"]);

/** Messages about a prompt that does not fit, of vLLM, SGLang, llama.cpp, Ollama, TGI and the hosted services. */
const CONTEXT_TEXT =
	/context length|context size|context window|maximum context|maximum model length|max_model_len|longer than the model|prompt is too long|input (?:length|is too long)|`inputs` (?:tokens|must have less)|exceeds? the (?:available|maximum) (?:context|number of tokens)/i;

/** Reads an error body or event: nested, flat, `detail` of FastAPI, or a bare string. */
function readUpstreamError(value: unknown): UpstreamError {
	const outer = asObject(value);
	const inner = outer?.error ?? outer?.detail ?? value;
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

/** FastAPI: `detail: [{loc: ["body", "temperature"], msg}]`. */
function errorOfDetails(details: readonly unknown[]): UpstreamError {
	const first = asObject(details[0]);
	const path = asArray(first?.loc) ?? [];
	const place = path[0] === "body" ? path.slice(1) : path;
	return { message: asText(first?.msg) ?? "", type: "", code: "", param: knownPlace(place.map(String)) };
}

/** Reads `messages[0].content` and `messages.0.content` alike. */
function knownField(value: unknown): string | null {
	const text = asText(value);
	return text === undefined ? null : knownPlace(text.split(/[.[\]]+/, PLACE_STEPS_MAX));
}

/** Writes a path in the interface's notation, up to the first name that is not part of the interface. */
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

function isContextOverflow(error: UpstreamError): boolean {
	return CONTEXT_TYPES.has(error.type) || CONTEXT_TYPES.has(error.code) || CONTEXT_TEXT.test(error.message);
}

/** A dialect handles its exceptions before this. `requestsFault`: messages by which a status 500 blames the request. */
export function failureOfStatus(status: number, bodyText: string, requestsFault?: RegExp): UpstreamFailure {
	const error = readUpstreamError(parseJson(bodyText) ?? bodyText);
	const detail = { status, private: `status ${status}: ${bodyText}` };
	if (status >= 400 && status < 500 && isContextOverflow(error)) return new UpstreamFailure("context_length", detail);
	const kind = status === 500 && requestsFault?.test(error.message) ? "rejected" : kindOfStatus(status);
	return new UpstreamFailure(kind, kind === "rejected" ? { ...detail, param: error.param } : detail);
}

function kindOfStatus(status: number): UpstreamFailureKind {
	if (status === 429 || status === 503) return "busy";
	// 402: the operator's credit with a provider. Redirects are not followed: they would carry the prompt and the key
	// away.
	if (status === 401 || status === 402 || status === 403 || status === 404) return "misconfigured";
	if (status >= 300 && status < 400) return "misconfigured";
	if (status === 405 || status === 407) return "misconfigured";
	if (status === 408 || status === 424 || status === 499 || status >= 500) return "failed";
	return status >= 400 ? "rejected" : "unreadable";
}

/** Codes and types by which an error inside an answer blames the request. */
const REQUESTS_FAULT: ReadonlySet<string> = new Set(["400", "422", "invalid_request_error", "BadRequestError"]);

/** An `error` with status 200 is the server's fault unless the code or type blames the request. */
export function failureOfError(value: unknown): UpstreamFailure {
	const error = readUpstreamError(value);
	const { code, type, param } = error;
	const detail = { private: `error in the answer: ${type} ${code} ${error.message}` };
	if (isContextOverflow(error)) return new UpstreamFailure("context_length", detail);
	if (!REQUESTS_FAULT.has(code) && !REQUESTS_FAULT.has(type)) return new UpstreamFailure("failed", detail);
	return new UpstreamFailure("rejected", { ...detail, status: 400, param });
}

/** Whether the body is `{"error": …}` or flat `{"object": "error", …}`; `"error": null` is no error. */
export function isError(body: JsonObject): boolean {
	return (body.error !== undefined && body.error !== null) || body.object === "error";
}

const REFUSED: ReadonlySet<string> = new Set(["ECONNREFUSED", "ConnectionRefused", "ENOTFOUND"]);

/** Whether nothing listens at the address. */
export function isRefused(error: unknown): boolean {
	return REFUSED.has(connectionCode(error));
}

export function connectionCode(error: unknown): string {
	return asText(asObject(error)?.code) ?? "";
}
