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
import type { CountsBytes } from "../body/bytes-body.ts";
import type { Connection } from "../connection.ts";
import type { Exchange } from "./context.ts";

export interface RequestBody {
	readonly value: Readonly<Record<string, unknown>>;
	/** Set for a large body: measuring and sending it are further steps, between which other requests run. */
	readonly timeSlice?: TimeSlice | undefined;
}

/** Properties that a checked request of every endpoint has. */
export interface EndpointInput {
	readonly ignored: readonly string[];
	readonly stream?: boolean;
	/** Number of choices that share the prompt; default 1. */
	readonly choices?: number;
}

/** An endpoint: data and small stateless functions, which `serve` calls in order. */
export interface InferenceEndpoint<
	Body extends RequestBody,
	Input extends EndpointInput,
	Reply extends CountedReply,
	Chunk,
> {
	readonly name: Endpoint;
	readonly kind: ModelKind;
	/** Endpoint of a chat model: chats or text completions. */
	readonly mode?: ChatMode;
	/** Field to name if the prompt is too long. */
	readonly promptField: string;
	/**
	 * Reads the body; `bytes` if it was already read. Faults: unsupported_media_type, payload_too_large, request_timeout,
	 * invalid_request.
	 */
	readBody(
		connection: Connection,
		bytesMax: number,
		reads: BodyReads,
		takes: CountsBytes,
		bytes?: Uint8Array<ArrayBuffer>,
	): Promise<Body>;
	/** Checks the request. Faults invalid_request and unsupported_parameter, each naming the field. */
	read(body: Body, model: Model): Input | Promise<Input>;
	/** Most that the request can use; the server gets this as a limit. */
	upperBound(input: Input, model: Model): Quantities;
	/** Requests with equal values share a replica's prefix cache. Called only if there are several replicas. */
	affinityOf?(input: Input): string;
	readonly whole: WholeAnswer<Input, Reply>;
	readonly streamed?: StreamedAnswer<Input, Chunk>;
}

export interface WholeAnswer<Input, Reply extends CountedReply> {
	call(exchange: Exchange<Input>, context: CallContext): UnaryCall<Reply>;
	/** Called once per admitted request when it was answered or failed: it will not be sent again. */
	over?(input: Input): void;
	bill(exchange: Exchange<Input>, reply: Reply): Bill;
	/** Body of the answer: JSON, or text, whole or in pieces. */
	write(exchange: Exchange<Input>, reply: Reply, bill: Bill): object | string | Generator<string>;
	contentType?(input: Input): string;
}

export interface StreamedAnswer<Input, Chunk> {
	call(exchange: Exchange<Input>, context: CallContext): StreamCall<Chunk>;
	relay(exchange: Exchange<Input>): Relay<Chunk>;
}

export interface Relay<Chunk> {
	/** The text of these chunks; empty if the client gets nothing of them. */
	chunks(chunks: readonly Chunk[]): string;
	end(bill: Bill): string;
	/** Last events of a failed stream: the error, then the charge. */
	fail(fault: Fault, bill: Bill, language: Language | undefined): string;
	/** Bill for the output so far; `finished` if it is complete. */
	bill(usage: ReportedUsage | undefined, output: OutputSize, finished: boolean): Bill;
	/** Most that delivering up to `output` tokens costs, or bytes without an upstream count. */
	costAt(now: Bill, output: number): NanoUsd;
}
