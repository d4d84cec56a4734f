import { CreditFault } from "../../admission/credit-fault.ts";
import { Fault } from "../../base/fault.ts";
import { KeyFault } from "../../keys/access.ts";
import type { KeyEntry } from "../../keys/key-entry.ts";
import type { Refusal } from "../../ops/refusal-rows.ts";
import { errorResponse, faultOf, statusOf } from "../error-body.ts";
import { logFields, type RequestContext, type ServeDeps } from "./context.ts";

/** A failed request and the reason. */
export interface Refused {
	/** The thrown value. */
	readonly error: unknown;
	/** The field that is named if the prompt is too long. */
	readonly promptField?: string;
	/** If true the request is settled, and its usage record has the result. */
	readonly admitted: boolean;
}

/** Returns the error response. Counts it and records it for the key's owner. */
export function refuse(
	deps: Pick<ServeDeps, "telemetry" | "clock">,
	context: RequestContext,
	{ error, promptField, admitted }: Refused,
): Response {
	const fault = withPromptField(faultOf(error), promptField);
	const { requestId } = context;
	const { log, stats, refusals } = deps.telemetry;
	stats.refuse(fault.code);
	const key = context.key ?? (fault instanceof KeyFault ? fault.key : undefined);
	if (fault.code === "internal_error") log.error("a request failed", { ...logFields(context, key), error });
	else if (fault.private !== undefined)
		log.info("a request was refused", { ...logFields(context, key), code: fault.code, detail: fault.private });
	// The result of a batch line is in the files of its batch.
	const answer = errorResponse(fault, requestId, context.connection.language);
	if (context.connection.line !== undefined) return answer;
	if (!admitted && key !== undefined) refusals.record(recordOf(context, key, fault, deps.clock.wallMs()));
	return answer;
}

/** A server that reports a too long prompt does not name this endpoint's field. */
function withPromptField(fault: Fault, param: string | undefined): Fault {
	if (fault.code !== "context_length_exceeded" || param === undefined || fault.param === param) return fault;
	const { code, texts, cause } = fault;
	return new Fault(code, texts, { param, cause, ...(fault.private === undefined ? {} : { private: fault.private }) });
}

function recordOf(context: RequestContext, key: KeyEntry, fault: Fault, atMs: number): Refusal {
	return {
		requestId: context.uuid,
		accountId: key.accountId,
		keyId: key.id,
		projectId: key.project?.id ?? null,
		model: context.modelName ?? null,
		endpoint: context.endpoint,
		code: fault.code,
		status: statusOf(fault),
		message: fault.message,
		param: fault.param,
		shortage: fault instanceof CreditFault ? fault.shortage : null,
		atMs,
	};
}
