import type { EnvironmentReader } from "../base/environment-reader.ts";
import type { TraceHeaders } from "./trace-context.ts";

/** Trace of a request. Its methods never throw, and receive neither prompts nor answers. */
export interface RequestTrace {
	/** Starts the span of an attempt at a model, under the id of the attempt's settlement. */
	admitted(attempt: {
		/** UUID of the settlement. */
		readonly id: string;
		/** The public request id. */
		readonly requestId: string;
		readonly model: string;
		readonly account: string;
		readonly key: string;
	}): void;
	/** Starts the span of a call to a model server. */
	call(replica: string, dialect: string): CallTrace;
	/** Records the response's status, which for a stream is known before its events. */
	answered(status: number): void;
}

export interface CallTrace {
	readonly headers: TraceHeaders;
	/** Ends the span. `failure`: a single word. */
	end(failure?: string, status?: number): void;
}

/** Distributed tracing. Undefined if it is off, so that a request costs only one check. */
export interface Traces {
	/** Starts the trace of a request; undefined if the request is not traced. */
	begin(request: Request, endpoint: string): RequestTrace | undefined;
	settled(facts: {
		readonly id: string;
		readonly ending: string;
		readonly promptTokens: number;
		readonly cachedTokens: number;
		readonly completionTokens: number;
		/** Charge in nano-dollars. */
		readonly charged: number;
		/** Milliseconds to the first token; null if there was none. */
		readonly first: number | null;
	}): void;
	/** Sends the remaining spans within a few seconds. */
	stop(): Promise<void>;
}

/** Samplers, by their names in `OTEL_TRACES_SAMPLER`. */
export const SAMPLERS = [
	"traceidratio",
	"always_on",
	"always_off",
	"parentbased_always_on",
	"parentbased_always_off",
	"parentbased_traceidratio",
] as const;
export type SamplerName = (typeof SAMPLERS)[number];

export interface TraceOptions {
	/** URL of an OTLP receiver over HTTP. */
	readonly url: string;
	readonly protocol: "http/protobuf" | "http/json";
	readonly headers: Readonly<Record<string, string>>;
	readonly sampler: SamplerName;
	/** Share of requests to record, 0 to 1. */
	readonly ratio: number;
	readonly sendEveryMs: number;
	readonly serviceName: string;
	/** Further attributes of this service. */
	readonly attributes: Readonly<Record<string, string>>;
}

/** Default share of recorded requests. Clients' sampling flags are ignored, because recording costs this service. */
const DEFAULT_RATIO = 0.01;

/**
 * Reads OpenTelemetry's standard variables for traces over HTTP; null if traces are off.
 * https://opentelemetry.io/docs/specs/otel/protocol/exporter/ and …/configuration/sdk-environment-variables/
 */
export function readTraceSettings(read: EnvironmentReader, note: (problem: string) => void): TraceOptions | null {
	const addresses = ["http:", "https:"];
	const own = read.url("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", addresses);
	const shared = read.url("OTEL_EXPORTER_OTLP_ENDPOINT", addresses);
	const protocol = read.choice("OTEL_EXPORTER_OTLP_PROTOCOL", ["http/protobuf", "http/json"]);
	const sampler = read.choice("OTEL_TRACES_SAMPLER", SAMPLERS);
	const ratio = ratioOf(read.text("OTEL_TRACES_SAMPLER_ARG"), note);
	const headers = pairsOf(read, "OTEL_EXPORTER_OTLP_HEADERS", note);
	const attributes = pairsOf(read, "OTEL_RESOURCE_ATTRIBUTES", note);
	const sendEveryMs = read.integer("OTEL_BSP_SCHEDULE_DELAY", 5_000, 10, 600_000);
	const serviceName = read.text("OTEL_SERVICE_NAME") ?? "tollgate";
	const url = own ?? (shared === null ? null : `${shared.replace(/\/$/, "")}/v1/traces`);
	if (url === null || sampler === "always_off") return null;
	return Object.freeze({ url, protocol, headers, sampler, ratio, sendEveryMs, serviceName, attributes });
}

function ratioOf(text: string | null, note: (problem: string) => void): number {
	if (text === null) return DEFAULT_RATIO;
	const ratio = /^(\d{1,9}(\.\d{0,9})?|\.\d{1,9})$/.test(text) ? Number(text) : Number.NaN;
	if (ratio <= 1) return ratio;
	note("OTEL_TRACES_SAMPLER_ARG must be a number from 0 to 1");
	return DEFAULT_RATIO;
}

/** Parses `name=value,name=value`, percent-encoded. Errors do not repeat values, which may be secrets. */
function pairsOf(read: EnvironmentReader, name: string, note: (problem: string) => void): Record<string, string> {
	const pairs: Record<string, string> = {};
	for (const entry of read.list(name)) {
		const [, key, value] = /^([A-Za-z0-9_.!#$%&'*+^`|~-]+)\s*=\s*(.*)$/.exec(entry) ?? [];
		const decoded = value === undefined ? undefined : decodedOf(value);
		if (key === undefined || decoded === undefined) note(`${name} must be name=value pairs, separated by commas`);
		else pairs[key] = decoded;
	}
	return pairs;
}

function decodedOf(text: string): string | undefined {
	try {
		return decodeURIComponent(text);
	} catch {
		return undefined;
	}
}
