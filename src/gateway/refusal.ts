import { CreditFault } from "../admission/credit-fault.ts";
import type { Fault, FaultCode } from "../base/fault.ts";
import type { KeyEntry } from "../keys/key-entry.ts";
import type { Endpoint } from "../ledger/event.ts";
import type { Refusal } from "../ops/refusals.ts";
import type { ChatDeps } from "./chat/chat.ts";
import { errorResponse, statusOf } from "./error-body.ts";
import type { Connection } from "./exchange.ts";

/** How far a request came. */
export interface Attempt {
	/** UUID. */
	readonly uuid: string;
	readonly requestId: string;
	readonly endpoint: Endpoint;
	/** Undefined before it is authenticated. */
	readonly key: KeyEntry | undefined;
	/** As asked for; undefined before it is read. */
	readonly asked: string | undefined;
	/** Then it is settled, and its usage record tells what became of it. */
	readonly admitted: boolean;
}

/** The error as an answer: counted, and written down where the owner of the key finds it. */
export function refusal(
	deps: ChatDeps,
	connection: Connection,
	attempt: Attempt,
	fault: Fault,
	/** What was thrown. */
	error: unknown,
): Response {
	const { requestId } = attempt;
	deps.stats.refuse(fault.code);
	if (fault.code === "internal_error") deps.log.error("a request failed", { request: requestId, error });
	else if (fault.private !== undefined)
		deps.log.info("a request was refused", { request: requestId, code: fault.code, detail: fault.private });
	if (!attempt.admitted) {
		const key = attempt.key ?? (TURNED_AWAY.has(fault.code) ? deps.keyOf(connection) : undefined);
		if (key !== undefined) deps.refusals.record(recordOf(attempt, key, fault, deps.clock.wallMs()));
	}
	return errorResponse(fault, requestId);
}

/** Said of a key that is known, by whoever authenticates it. */
const TURNED_AWAY: ReadonlySet<FaultCode> = new Set(["api_key_revoked", "api_key_expired", "account_suspended"]);

function recordOf(attempt: Attempt, key: KeyEntry, fault: Fault, atMs: number): Refusal {
	return {
		requestId: attempt.uuid,
		accountId: key.accountId,
		keyId: key.id,
		model: attempt.asked ?? null,
		endpoint: attempt.endpoint,
		code: fault.code,
		status: statusOf(fault),
		message: fault.message,
		param: fault.param,
		shortage: fault instanceof CreditFault ? fault.shortage : null,
		atMs,
	};
}
