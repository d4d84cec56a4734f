import { newUuid } from "../base/id.ts";

type LineRetryDecision =
	/** The line has its final outcome. */
	| "final"
	/** Not sent because credit is lacking; sent again later. */
	| "credit"
	/** A temporary failure without a charge; sent again. */
	| "later"
	/** The model server failed, without a charge; sent again a few times. */
	| "failed"
	/** Not sent, because the key is revoked or expired. */
	| "key";

const DECISIONS: Readonly<Record<string, LineRetryDecision>> = {
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

/** Parses an error body that the gateway wrote. */
export function parseErrorBody(text: string) {
	const { error } = JSON.parse(text) as { error: { code: string; message: string } };
	return { code: error.code, message: error.message };
}

export function lineRetryDecision(status: number, code: string): LineRetryDecision {
	return status === 200 ? "final" : (DECISIONS[code] ?? "final");
}

/** Why a line has no answer, in OpenAI's format. */
export interface LineError {
	readonly code: string;
	readonly message: string;
	/** `req_…`: id of the line's last request. */
	readonly request_id?: string;
}

export const EXPIRED_LINE_ERROR: LineError = {
	code: "batch_expired",
	message: "This request could not be executed before the completion window expired.",
};
export const CANCELLED_LINE_ERROR: LineError = {
	code: "batch_cancelled",
	message: "This request was not executed: the batch was cancelled before.",
};

const requestIdOf = (uuid: string): string => `req_${uuid.replaceAll("-", "")}`;

/** Error of a line whose request the service itself interrupted. */
export const interruptedError = (uuid: string): LineError => ({
	code: "batch_line_interrupted",
	message:
		"The service failed during this request and does not repeat it. See its charge at GET /v1/usage/{request_id}.",
	request_id: requestIdOf(uuid),
});

/** Line for the output file, or for the error file if the status is not 2xx. `body`: the answer's JSON. */
export function answeredLine(customId: string, uuid: string, status: number, body: string): string {
	const response = `{"status_code":${status},"request_id":"${requestIdOf(uuid)}","body":${body}}`;
	return `{"id":"${lineIdOf(uuid)}","custom_id":${JSON.stringify(customId)},"response":${response},"error":null}\n`;
}

/** Line for the error file, for a request that got no answer. */
export function unansweredLine(customId: string, error: LineError, uuid = newUuid()): string {
	return `${JSON.stringify({ id: lineIdOf(uuid), custom_id: customId, response: null, error })}\n`;
}

const lineIdOf = (uuid: string): string => `batch_req_${uuid.replaceAll("-", "")}`;
