import type { TraceHeaders } from "./trace-context.ts";

/** A request that is traced. Nothing in here throws, and nothing of a prompt or an answer comes here. */
export interface RequestTrace {
	/** A model is tried, under the id that its settlement will have. */
	admitted(attempt: AttemptFacts): void;
	/** A call to one of the model's servers goes out. */
	call(replica: string, dialect: string): CallTrace;
	/** The answer's status is known; of a stream the rest is still to come. */
	answered(status: number): void;
}

export interface AttemptFacts {
	/** UUID. */
	readonly id: string;
	/** As the client hears it. */
	readonly requestId: string;
	readonly model: string;
	readonly account: string;
	readonly key: string;
}

export interface CallTrace {
	readonly headers: TraceHeaders;
	/** `failure`: in a word. */
	end(failure?: string, status?: number): void;
}

/** What a settlement says of an attempt. */
export interface SettledFacts {
	/** UUID. */
	readonly id: string;
	readonly ending: string;
	readonly promptTokens: number;
	readonly cachedTokens: number;
	readonly completionTokens: number;
	/** Nano-dollars. */
	readonly charged: number;
	/** Milliseconds to the first token, null if there was none. */
	readonly first: number | null;
}

/** Distributed traces. Undefined where none are wanted, so that a request asks once and does nothing else. */
export interface Traces {
	/** Undefined if the request is in no trace. */
	begin(request: Request, endpoint: string): RequestTrace | undefined;
	settled(facts: SettledFacts): void;
	/** Sends what is left, within a few seconds. */
	stop(): Promise<void>;
}

/** By the names of OpenTelemetry's `OTEL_TRACES_SAMPLER`. */
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
	/** Takes OTLP over HTTP. */
	readonly url: string;
	readonly protocol: "http/protobuf" | "http/json";
	readonly headers: Readonly<Record<string, string>>;
	readonly sampler: Sampler;
	/** 0 to 1. */
	readonly ratio: number;
	readonly sendEveryMs: number;
	readonly serviceName: string;
	/** More of what describes this service. */
	readonly attributes: Readonly<Record<string, string>>;
}
