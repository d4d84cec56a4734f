import type { Quantities } from "../../admission/price.ts";
import type { Fault } from "../../base/fault.ts";
import type { Language } from "../../base/language.ts";
import type { TimeSlice } from "../../base/time-slice.ts";
import type { ChatMode, Model, ModelKind } from "../../catalog/model.ts";
import type { Endpoint } from "../../catalog/request-fields.ts";
import type { NanoUsd } from "../../money/nano-usd.ts";
import type { AnswerStream } from "../../upstream/call/stream-wire.ts";
import type { Replied } from "../../upstream/call/unary.ts";
import type { Upstreams } from "../../upstream/upstreams.ts";
import type { ReportedUsage } from "../../upstream/usage.ts";
import type { Bill, OutputSize } from "../bill/bill.ts";
import type { BodyReads } from "../body/body-reads.ts";
import type { TakesBytes } from "../body/bytes-body.ts";
import type { Connection } from "../connection.ts";
import type { Exchange } from "./context.ts";

/** A body as it was read. */
export interface RequestBody {
	/** What it says, by field. */
	readonly value: Readonly<Record<string, unknown>>;
	/** Of a large one: to measure and to send it are further steps, between which others have their turn. */
	readonly timeSlice?: TimeSlice | undefined;
}

/** What every endpoint knows of a request that it has read. */
export interface EndpointInput {
	/** Fields of the request that the deployment does not honour. */
	readonly ignored: readonly string[];
	/** Whether the answer is to be a stream; not if absent. */
	readonly stream?: boolean;
	/** Choices that share the prompt; 1 if absent. */
	readonly choices?: number;
}

/** What is particular to one endpoint: data and small functions without state, which `serve` puts in their order. */
export interface InferenceEndpoint<Body extends RequestBody, Input extends EndpointInput, Reply, Chunk> {
	/** As usage records and refusals name it. */
	readonly name: Endpoint;
	/** The deployments that it takes. */
	readonly kind: ModelKind;
	/** Which of a chat deployment's endpoints it is. */
	readonly mode?: ChatMode;
	/** The field that a prompt which is too long is in. */
	readonly promptField: string;
	/** `bytes`: the body, where it was read already. Faults: unsupported_media_type, payload_too_large, request_timeout, invalid_request. */
	readBody(
		connection: Connection,
		bytesMax: number,
		reads: BodyReads,
		takes: TakesBytes,
		bytes?: Uint8Array<ArrayBuffer>,
	): Promise<Body>;
	/** Faults: invalid_request and unsupported_parameter, each naming the field. */
	read(body: Body, model: Model): Input | Promise<Input>;
	/** The most that the request can use, and what the server will be held to. */
	upperBound(input: Input, model: Model): Quantities;
	readonly whole: WholeAnswer<Input, Reply>;
	/** Undefined for endpoints that read no request for a stream. */
	readonly streamed?: StreamedAnswer<Input, Chunk>;
}

/** How an answer that leaves in one piece is asked for, billed and written. */
export interface WholeAnswer<Input, Reply> {
	/** Rejects with Fault or UpstreamFailure. */
	send(upstreams: Upstreams, exchange: Exchange<Input>, signal: AbortSignal): Promise<Replied<Reply>>;
	/** It was answered, or failed: nothing of it is sent again. Called once for each that was admitted. */
	over?(input: Input): void;
	bill(exchange: Exchange<Input>, reply: Reply): Bill;
	/** The body of the answer: JSON, or a text as it is or in pieces. */
	write(exchange: Exchange<Input>, reply: Reply, bill: Bill): object | string | Generator<string>;
	/** JSON if absent. */
	contentType?(input: Input): string;
}

/** How an answer that leaves in events is asked for, and what relays it. */
export interface StreamedAnswer<Input, Chunk> {
	open(upstreams: Upstreams, exchange: Exchange<Input>, signal: AbortSignal): AnswerStream<Chunk>;
	/** With the state of one stream. */
	relay(exchange: Exchange<Input>): Relay<Chunk>;
}

/** The writing and the billing of one streamed answer. */
export interface Relay<Chunk> {
	/** The text of these chunks; empty if nothing of them is to be written yet. */
	chunks(chunks: readonly Chunk[]): string;
	/** The last events of a stream that came to its end. */
	end(bill: Bill): string;
	/** The last events of one that did not: the error, then what was charged. */
	fail(fault: Fault, bill: Bill, language: Language | undefined): string;
	/** The bill for what was delivered so far; `finished` if that is all. */
	bill(usage: ReportedUsage | undefined, output: OutputSize, finished: boolean): Bill;
	/** What it costs at most to deliver up to `output` tokens, or bytes where nobody counts. */
	costAt(now: Bill, output: number): NanoUsd;
}
