import type { TraceHeaders } from "./trace-context.ts";

/** A traced request. Nothing here throws or sees prompts and answers. */
export interface RequestTrace {
	/** A model is tried, under the id of its settlement. */
	admitted(attempt: AttemptFacts): void;
	/** A call to one of the model's servers is sent. */
	call(replica: string, dialect: string): CallTrace;
	/** The answer's status is known; a stream's events follow. */
	answered(status: number): void;
}

export interface AttemptFacts {
	/** UUID. */
	readonly id: string;
	/** The public request id. */
	readonly requestId: string;
	readonly model: string;
	readonly account: string;
	readonly key: string;
}

export interface CallTrace {
	readonly headers: TraceHeaders;
	/** `failure`: one word. */
	end(failure?: string, status?: number): void;
}

/** A settled attempt. */
export interface SettledFacts {
	/** UUID. */
	readonly id: string;
	readonly ending: string;
	readonly promptTokens: number;
	readonly cachedTokens: number;
	readonly completionTokens: number;
	/** Nano-dollars. */
	readonly charged: number;
	/** Milliseconds to the first token, null without one. */
	readonly first: number | null;
}

/** Distributed traces. Undefined if tracing is off, so that a request costs one check. */
export interface Traces {
	/** Undefined if the request is in no trace. */
	begin(request: Request, endpoint: string): RequestTrace | undefined;
	settled(facts: SettledFacts): void;
	/** Sends the remaining spans, within a few seconds. */
	stop(): Promise<void>;
}

/** Names of OpenTelemetry's `OTEL_TRACES_SAMPLER`. */
export const SAMPLERS = [
	"traceidratio",
	"always_on",
	"always_off",
	"parentbased_always_on",
	"parentbased_always_off",
	"parentbased_traceidratio",
] as const;
export type Sampler = (typeof SAMPLERS)[number];

export interface TraceOptions {
	/** URL that takes OTLP over HTTP. */
	readonly url: string;
	readonly protocol: "http/protobuf" | "http/json";
	readonly headers: Readonly<Record<string, string>>;
	readonly sampler: Sampler;
	/** 0 to 1. */
	readonly ratio: number;
	readonly sendEveryMs: number;
	readonly serviceName: string;
	/** More attributes of this service. */
	readonly attributes: Readonly<Record<string, string>>;
}
