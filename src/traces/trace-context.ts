/** Trace context of a request, as defined in https://www.w3.org/TR/trace-context/ */
export interface TraceContext {
	/** 32 hex digits. */
	readonly traceId: string;
	/** 16 hex digits. */
	readonly spanId: string;
	readonly isSampled: boolean;
	/** Entries of other tracing systems; an empty string if there are none. */
	readonly state: string;
}

export interface TraceHeaders {
	readonly traceparent: string;
	readonly tracestate?: string;
}

const TRACEPARENT = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
const ZEROS = /^0+$/;
/** Longest `tracestate`. W3C requires services to forward at least this length. */
const STATE_CHARS_MAX = 512;
const VISIBLE = /^[\x20-\x7e]*$/;

/** Reads the trace context. Undefined if it is missing or invalid: then a new trace starts. */
export function readTraceContext(headers: Headers): TraceContext | undefined {
	const text = headers.get("traceparent");
	if (text === null) return undefined;
	const [, version, traceId = "", spanId = "", flags = "", rest] = TRACEPARENT.exec(text) ?? [];
	if (version === undefined || version === "ff" || (version === "00" && rest !== undefined)) return undefined;
	if (ZEROS.test(traceId) || ZEROS.test(spanId)) return undefined;
	const state = headers.get("tracestate") ?? "";
	const isKept = state.length <= STATE_CHARS_MAX && VISIBLE.test(state);
	return { traceId, spanId, isSampled: (Number.parseInt(flags, 16) & 1) === 1, state: isKept ? state : "" };
}

export function traceHeaders({ traceId, spanId, isSampled, state }: TraceContext): TraceHeaders {
	const traceparent = `00-${traceId}-${spanId}-${isSampled ? "01" : "00"}`;
	return state === "" ? { traceparent } : { traceparent, tracestate: state };
}
