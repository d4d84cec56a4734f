export type UpstreamFailureKind =
	/** Nobody answers at the address, or the connection broke before an answer. */
	| "unreachable"
	/** It answered, but with something that is not what was asked for: no JSON, no choices. */
	| "unreadable"
	/** connect, first event, silence or total deadline. */
	| "timeout"
	/** It answered that it is overloaded or not ready (429, 503). */
	| "busy"
	/** A 5xx, an error event, an `abort` finish. */
	| "failed"
	/** The answer ended without its end. */
	| "died"
	/** It refuses our request as malformed (4xx): the customer's to mend. */
	| "rejected"
	/** As `rejected`: the prompt does not fit its context. */
	| "context_length"
	/** Two replicas failed on the same request while they answer others: the customer's to mend. */
	| "unanswerable"
	/** It refuses our own credentials or does not know the model: the operator's to mend. */
	| "misconfigured"
	/** A line of a batch gave its place up to somebody who waited: it is sent again when there is one. */
	| "yielded"
	/** This process had no descriptor left to ask anybody with. */
	| "shortage"
	/** This process had no memory for an answer of such length beside the others that it holds. */
	| "crowded"
	/** This process stops, and waits no longer. */
	| "stopping"
	/** The client left, or whoever else had called; nobody is to blame. */
	| "aborted";

/** What went wrong upstream. Never shown as it is: `gateway/error-body.ts` maps the kind. */
export class UpstreamFailure extends Error {
	override readonly name = "UpstreamFailure" as const;
	readonly kind: UpstreamFailureKind;
	/** HTTP status of the upstream's answer, where there was one. */
	readonly status: number | undefined;
	/** The field that a `rejected` is about, if the upstream named one that the client sent. */
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

/** An answer that makes no sense: another replica may do better. */
export function unreadable(detail: string): UpstreamFailure {
	return new UpstreamFailure("unreadable", { private: detail });
}

/** An answer that broke off. */
export function died(detail: string): UpstreamFailure {
	return new UpstreamFailure("died", { private: detail });
}

/** An answer that says that something went wrong, or that passes a limit. */
export function failed(detail: string): UpstreamFailure {
	return new UpstreamFailure("failed", { private: detail });
}

/** Nobody is left to wait for an answer. */
export function stopping(cause?: unknown): UpstreamFailure {
	return new UpstreamFailure("stopping", { private: "the process stops", cause });
}
