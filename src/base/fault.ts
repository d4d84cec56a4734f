import { englishText, type Text, type TextValues } from "./translate.ts";

/** Codes of all expected failures. `gateway/error-body.ts` maps each to an HTTP status and an error type. */
export type FaultCode =
	| "invalid_request"
	| "context_length_exceeded"
	| "unsupported_parameter"
	| "missing_api_key"
	| "invalid_api_key"
	| "api_key_revoked"
	| "api_key_expired"
	| "sign_in_required"
	| "session_required"
	| "second_factor_required"
	| "reauthentication_required"
	| "forbidden"
	| "top_up_required"
	| "insufficient_quota"
	| "key_cap_exceeded"
	| "project_cap_exceeded"
	| "model_not_allowed"
	| "account_suspended"
	| "project_archived"
	| "read_only_key"
	| "model_not_found"
	| "unsupported_mode"
	| "not_found"
	| "method_not_allowed"
	| "request_timeout"
	| "conflict"
	| "precondition_failed"
	| "payload_too_large"
	| "range_not_satisfiable"
	| "unsupported_media_type"
	| "idempotency_mismatch"
	| "unprocessable_request"
	| "rate_limit_exceeded"
	| "overloaded"
	| "upstream_error"
	| "upstream_timeout"
	| "service_unavailable"
	| "internal_error";

export interface FaultDetail {
	values?: TextValues;
	/** Request field that caused the failure, in OpenAI's notation (`messages[0].content`). */
	param?: string | null;
	/** Text for the log only. It may contain addresses, key ids and texts of model servers. */
	private?: string;
	/** Seconds for the `retry-after` header. */
	retryAfterS?: number;
	/** True if a retry will not help although the status suggests one. */
	isFinal?: true;
	cause?: unknown;
}

/** An expected failure with a code, a public text for the client and a private text for the log. */
export class Fault extends Error {
	override readonly name = "Fault" as const;
	readonly code: FaultCode;
	/** The public text in parts, for translation (`translate.ts`). */
	readonly texts: readonly Text[];
	readonly param: string | null;
	readonly private: string | undefined;
	readonly retryAfterS: number | undefined;
	readonly isFinal: boolean;

	/** `text` is public: the id of a text, or several texts that are joined in order. */
	constructor(code: FaultCode, text: string | readonly Text[], detail: FaultDetail = {}) {
		const { values } = detail;
		const texts = typeof text !== "string" ? text : [values === undefined ? { id: text } : { id: text, values }];
		super(texts.map(englishText).join(" "), detail.cause === undefined ? undefined : { cause: detail.cause });
		this.code = code;
		this.texts = texts;
		this.param = detail.param ?? null;
		this.private = detail.private;
		this.retryAfterS = detail.retryAfterS;
		this.isFinal = detail.isFinal === true;
	}
}
