import type { Quantities } from "../../admission/price.ts";
import type { Fault } from "../../base/fault.ts";
import type { Language } from "../../base/language.ts";
import type { TimeSlice } from "../../base/time-slice.ts";
import type { ChatMode, Model, ModelKind } from "../../catalog/model.ts";
import type { Endpoint } from "../../catalog/request-fields.ts";
import type { NanoUsd } from "../../money/nano-usd.ts";
import type { CallContext } from "../../upstream/call/attempt.ts";
import type { StreamCall } from "../../upstream/call/stream.ts";
import type { CountedReply, UnaryCall } from "../../upstream/call/unary.ts";
import type { ReportedUsage } from "../../upstream/usage.ts";
import type { Bill, OutputSize } from "../bill/bill.ts";
import type { BodyReads } from "../body/body-reads.ts";
import type { ByteCounter } from "../body/bytes-body.ts";
import type { Connection } from "../connection.ts";
import type { ServedRequest } from "./context.ts";

export interface RequestBody {
	readonly value: Readonly<Record<string, unknown>>;
	/** Time slice of a large body. If set, measuring and sending pause between slices, so that other requests run. */
	readonly timeSlice?: TimeSlice | undefined;
}

/** Fields that the checked request of every endpoint has. */
export interface EndpointInput {
	readonly ignored: readonly string[];
	readonly stream?: boolean;
	/** Number of choices that share the prompt; default 1. */
	readonly choices?: number;
}

/** An endpoint: data and small stateless functions that `serveRequest` calls in order. */
export interface InferenceEndpoint<
	Body extends RequestBody,
	Input extends EndpointInput,
	Reply extends CountedReply,
	Chunk,
> {
	readonly name: Endpoint;
	readonly kind: ModelKind;
	/** Set if the endpoint uses chat models: for chat completions or for text completions. */
	readonly mode?: ChatMode;
	/** Name of the field that an error reports if the prompt is too long. */
	readonly promptField: string;
	/**
	 * Reads the body, or parses `bytes` if the body was already read. Faults: unsupported_media_type, payload_too_large,
	 * request_timeout, invalid_request.
	 */
	readBody(
		connection: Connection,
		bytesMax: number,
		reads: BodyReads,
		takes: ByteCounter,
		bytes?: Uint8Array<ArrayBuffer>,
	): Promise<Body>;
	/** Checks the request. Faults invalid_request and unsupported_parameter, each naming the field. */
	read(body: Body, model: Model): Input | Promise<Input>;
	/** The most that the request can use. Servers get it as their output limit. */
	upperBound(input: Input, model: Model): Quantities;
	/** JSON of the prompt, whose beginning a server may have cached. Called only if the model has several replicas. */
	promptOf?(input: Input): string;
	readonly whole: WholeAnswer<Input, Reply>;
	readonly streamed?: StreamedAnswer<Input, Chunk>;
}

export interface WholeAnswer<Input, Reply extends CountedReply> {
	call(exchange: ServedRequest<Input>, context: CallContext): UnaryCall<Reply>;
	/** Called once per admitted request, when the request will not be sent to another server. */
	over?(input: Input): void;
	bill(exchange: ServedRequest<Input>, reply: Reply): Bill;
	/** Body of the answer: an object to serialize, or text, complete or in pieces. */
	write(exchange: ServedRequest<Input>, reply: Reply, bill: Bill): object | string | Generator<string>;
	contentType?(input: Input): string;
}

export interface StreamedAnswer<Input, Chunk> {
	call(exchange: ServedRequest<Input>, context: CallContext): StreamCall<Chunk>;
	relay(exchange: ServedRequest<Input>): Relay<Chunk>;
}

export interface Relay<Chunk> {
	/** The events for these chunks as text; empty if no chunk is for the client. */
	chunks(chunks: readonly Chunk[]): string;
	end(bill: Bill): string;
	/** Last events of a failed stream: the error, then the charge. */
	fail(fault: Fault, bill: Bill, language: Language | undefined): string;
	/** Bill for the output so far. `finished`: the output is complete. */
	bill(usage: ReportedUsage | undefined, output: OutputSize, finished: boolean): Bill;
	/** Upper bound of the cost of `output` tokens; `output` is in bytes if the upstream server counts no tokens. */
	costAt(now: Bill, output: number): NanoUsd;
}
