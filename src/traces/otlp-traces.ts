import {
	type Context,
	createTraceState,
	ROOT_CONTEXT,
	type Span,
	SpanKind,
	SpanStatusCode,
	trace,
} from "@opentelemetry/api";
import { OTLPTraceExporter as JsonExporter } from "@opentelemetry/exporter-trace-otlp-http";
import { OTLPTraceExporter as ProtobufExporter } from "@opentelemetry/exporter-trace-otlp-proto";
import { resourceFromAttributes } from "@opentelemetry/resources";
import { BatchSpanProcessor, type SpanExporter, TracerProvider } from "@opentelemetry/sdk-trace";
import type { Log } from "../base/log.ts";
import { SlotMap } from "../base/slot-map.ts";
import { VERSION } from "../base/version.ts";
import { readTraceContext, type TraceContext, type TraceHeaders, traceHeaders } from "./trace-context.ts";
import type { CallTrace, RequestTrace, TraceOptions, Traces } from "./traces.ts";

/** Maximum number of spans that wait to be sent; further spans are dropped. */
const QUEUE_MAX = 8_192;
const BATCH_MAX = 512;
const SEND_MS_MAX = 5_000;

/** Operation names of OpenTelemetry's conventions for generative AI; other endpoints have none. */
const OPERATIONS: Readonly<Record<string, string>> = {
	chat: "chat",
	completions: "text_completion",
	embeddings: "embeddings",
};

/** A request's attempt at one model, open until it is settled. */
interface OpenAttempt {
	readonly span: Span;
	readonly request: Recording;
}

interface Recording {
	readonly span: Span;
	readonly context: Context;
	open: number;
	isAnswered: boolean;
}

/**
 * Sends traces by OTLP over HTTP. A recorded request has a server span, with a child span per model that was tried;
 * these have a child span per call.
 */
export function createOtlpTraces({ log }: { log: Log }, options: TraceOptions): Traces {
	const provider = createProvider(log, options);
	const tracer = provider.getTracer("tollgate", VERSION);
	const isRecorded = createSampling(options);
	/** Open attempts of recorded requests, by the id of their settlement. */
	const attempts = new SlotMap<OpenAttempt>();

	function endIfOver(request: Recording): void {
		if (request.isAnswered && request.open === 0) request.span.end();
	}

	function record(endpoint: string, path: string, parent: TraceContext | undefined): RequestTrace {
		const span = tracer.startSpan(
			`POST ${path}`,
			{ kind: SpanKind.SERVER, attributes: { "http.request.method": "POST", "http.route": path, "url.path": path } },
			parent === undefined ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, remote(parent)),
		);
		const request: Recording = { span, context: trace.setSpan(ROOT_CONTEXT, span), open: 0, isAnswered: false };
		let current = span;
		return {
			admitted({ id, requestId, model, account, key }) {
				const operation = OPERATIONS[endpoint] ?? endpoint;
				current = tracer.startSpan(
					`${operation} ${model}`,
					{
						kind: SpanKind.CLIENT,
						attributes: {
							"gen_ai.operation.name": operation,
							"gen_ai.request.model": model,
							"tollgate.request": requestId,
							"tollgate.account": account,
							"tollgate.key": key,
						},
					},
					request.context,
				);
				request.open += 1;
				attempts.set(id, { span: current, request });
			},
			call(replica, dialect) {
				current.setAttribute("gen_ai.provider.name", dialect);
				const sent = tracer.startSpan(
					"POST",
					{ kind: SpanKind.CLIENT, attributes: { "http.request.method": "POST", "tollgate.replica": replica } },
					trace.setSpan(ROOT_CONTEXT, current),
				);
				return recordedCall(sent);
			},
			answered(status) {
				span.setAttribute("http.response.status_code", status);
				if (status >= 500) fail(span, String(status));
				request.isAnswered = true;
				endIfOver(request);
			},
		};
	}

	return {
		begin({ headers, url }, endpoint) {
			const parent = readTraceContext(headers);
			if (isRecorded(parent)) return record(endpoint, new URL(url).pathname, parent);
			return parent && passing(traceHeaders(parent));
		},
		settled(facts) {
			// Usually no request is recorded, so that no look-up is needed.
			const attempt = attempts.size === 0 ? undefined : attempts.delete(facts.id);
			if (attempt === undefined) return;
			const { span, request } = attempt;
			span.setAttributes({
				"gen_ai.usage.input_tokens": facts.promptTokens,
				"gen_ai.usage.cache_read.input_tokens": facts.cachedTokens,
				"gen_ai.usage.output_tokens": facts.completionTokens,
				"tollgate.charged_nano_usd": facts.charged,
				"tollgate.ending": facts.ending,
				...(facts.first === null ? {} : { "tollgate.first_token_ms": facts.first }),
			});
			if (facts.ending !== "finished") fail(span, facts.ending);
			span.end();
			request.open -= 1;
			endIfOver(request);
		},
		stop: () => provider.shutdown().catch(() => {}),
	};
}

function recordedCall(span: Span): CallTrace {
	const { traceId, spanId, traceState } = span.spanContext();
	const headers = traceHeaders({ traceId, spanId, isSampled: true, state: traceState?.serialize() ?? "" });
	return {
		headers,
		end(failure, status) {
			if (status !== undefined) span.setAttribute("http.response.status_code", status);
			if (failure !== undefined) fail(span, failure);
			span.end();
		},
	};
}

/** Trace of a request that belongs to a client's trace, but is not recorded by this service. */
function passing(headers: TraceHeaders): RequestTrace {
	const call: CallTrace = { headers, end() {} };
	return { admitted() {}, call: () => call, answered() {} };
}

function fail(span: Span, type: string): void {
	span.setAttribute("error.type", type);
	span.setStatus({ code: SpanStatusCode.ERROR });
}

function remote({ traceId, spanId, isSampled, state }: TraceContext) {
	const traceState = state === "" ? {} : { traceState: createTraceState(state) };
	return { traceId, spanId, traceFlags: isSampled ? 1 : 0, isRemote: true, ...traceState };
}

function createExporter({ url, headers, protocol }: TraceOptions): SpanExporter {
	const options = { url, headers: { ...headers }, timeoutMillis: SEND_MS_MAX };
	return protocol === "http/json" ? new JsonExporter(options) : new ProtobufExporter(options);
}

/** Logs once when sending starts to fail, and once when it works again. */
function watched(log: Log, exporter: SpanExporter): SpanExporter {
	let isFailing = false;
	return {
		export(spans, done) {
			exporter.export(spans, (result) => {
				const failed = result.code !== 0;
				if (failed && !isFailing) log.warn("traces cannot be sent; they are dropped", { error: result.error });
				if (!failed && isFailing) log.info("traces are sent again");
				isFailing = failed;
				done(result);
			});
		},
		shutdown: () => exporter.shutdown(),
		forceFlush: () => exporter.forceFlush?.() ?? Promise.resolve(),
	};
}

function createProvider(log: Log, options: TraceOptions): TracerProvider {
	return new TracerProvider({
		resource: resourceFromAttributes({
			"service.name": options.serviceName,
			"service.version": VERSION,
			...options.attributes,
		}),
		spanProcessors: [
			new BatchSpanProcessor({
				exporter: watched(log, createExporter(options)),
				maxQueueSize: QUEUE_MAX,
				maxExportBatchSize: BATCH_MAX,
				scheduledDelayMillis: options.sendEveryMs,
				exportTimeoutMillis: SEND_MS_MAX,
			}),
		],
	});
}

/** The last hex digits of a trace id, which decide: these 52 bits are random, and a double holds them exactly. */
const ID_DIGITS = 13;
const ID_SPACE = 16 ** ID_DIGITS;

/** Decides whether to record a request. Services with the same ratio make the same decision for a trace id. */
export function createSampling({ sampler, ratio }: Pick<TraceOptions, "sampler" | "ratio">) {
	const isBased = sampler.startsWith("parentbased_");
	const own = isBased ? sampler.slice("parentbased_".length) : sampler;
	const share = own === "always_on" ? 1 : own === "always_off" ? 0 : ratio;
	return (parent: TraceContext | undefined): boolean => {
		if (parent === undefined) return Math.random() < share;
		if (isBased) return parent.isSampled;
		return Number.parseInt(parent.traceId.slice(-ID_DIGITS), 16) < share * ID_SPACE;
	};
}
