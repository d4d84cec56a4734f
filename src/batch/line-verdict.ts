export type Verdict =
	/** The line has its outcome. */
	| "final"
	/** Not sent: not enough credit. */
	| "credit"
	/** Temporary: not charged, to be retried. */
	| "later"
	/** The model server failed; not charged. */
	| "failed"
	/** Not sent: the key is revoked or expired. */
	| "key";

const VERDICTS: Readonly<Record<string, Verdict>> = {
	insufficient_quota: "credit",
	key_cap_exceeded: "credit",
	project_cap_exceeded: "credit",
	service_unavailable: "later",
	overloaded: "later",
	rate_limit_exceeded: "later",
	top_up_required: "later",
	sign_in_required: "later",
	account_suspended: "later",
	upstream_error: "failed",
	upstream_timeout: "failed",
	request_timeout: "failed",
	api_key_revoked: "key",
	project_archived: "key",
	api_key_expired: "key",
	invalid_api_key: "key",
};

/** Code and public text of an error answer. */
export interface AnswerError {
	readonly code: string;
	readonly message: string;
}

/** `text` is a body in the interface's error shape. */
export function errorOf(text: string): AnswerError {
	const { error } = JSON.parse(text) as { error: AnswerError };
	return { code: error.code, message: error.message };
}

export function verdictOf(status: number, code: string): Verdict {
	return status === 200 ? "final" : (VERDICTS[code] ?? "final");
}
