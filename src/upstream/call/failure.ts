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
	/** The answer broke off before its end. */
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
	/** This process is stopping. */
	| "stopping"
	/** The client or the calling part left; no server is at fault. */
	| "aborted";

/** A failure of an upstream call. It is never shown as it is: `gateway/error-body.ts` maps the kind. */
export class UpstreamFailure extends Error {
	override readonly name = "UpstreamFailure" as const;
	readonly kind: UpstreamFailureKind;
	/** HTTP status of the upstream's answer, if there was one. */
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

/** Makes the failure of an answer that broke off. */
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
