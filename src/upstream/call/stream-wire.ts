import type { Dialect } from "../dialects.ts";
import type { ReportedUsage } from "../usage.ts";

/** Parses a stream event by event: returns chunks, collects the usage, and knows whether the stream is complete. */
export interface StreamReader<Chunk> {
	/** Returns the chunk of an event; undefined if the event contains nothing for the client. Throws UpstreamFailure. */
	accept(payload: string): Chunk | undefined;
	/** True after the stream's end marker (`[DONE]`). */
	ended(): boolean;
	/** True if every requested choice has a finish reason. */
	finished(): boolean;
	usage(): ReportedUsage | undefined;
	usageIsFinal(): boolean;
}

export interface ReadResult {
	readonly done: boolean;
	readonly value?: Uint8Array | undefined;
}

export interface OutputChunk {
	readonly outputBytes: number;
}

export interface StreamWire<Chunk> {
	readonly path: string;
	reader(dialect: Dialect): StreamReader<Chunk>;
	whole(text: string, dialect: Dialect): { chunk: Chunk; usage: ReportedUsage | undefined };
}

/** Joins the chunks of a server that streams although an unstreamed answer was requested. */
export interface StreamGatherer<Answer, Chunk = OutputChunk> {
	readonly wire: StreamWire<Chunk>;
	/** Adds a chunk. Returns an upper bound of the bytes that are kept of it. */
	add(chunk: Chunk): number;
	answer(usage: ReportedUsage | undefined): Answer;
}

/** An open stream of an answer. Other replicas are tried until `next` returns the first chunks. */
export interface AnswerStream<Chunk> {
	/**
	 * Returns all chunks that arrived together, at least one; null when the answer is complete: finished, and followed by
	 * an end marker, silence or a close. Throws UpstreamFailure for an incomplete answer. Do not call it after an end.
	 */
	next(): Promise<readonly Chunk[] | null>;
	/** Does the same as `next` with one promise less: pass its result to `take` and its rejection to `brokeOff`. */
	arrives(): Promise<ReadResult>;
	/** Returns the same as `next`, or undefined if `arrives` must be called again. */
	take(arrived: ReadResult): readonly Chunk[] | null | undefined;
	/** Returns the end, for `take`, if the answer is complete; otherwise throws the failure. */
	brokeOff(error: unknown): ReadResult;
	/** Newest usage record; final once `next` has returned null. Until then some dialects report a running count. */
	usage(): ReportedUsage | undefined;
	usageIsFinal(): boolean;
	/** Name of the replica in logs and metrics (`model#0`); undefined until a replica is chosen. */
	replica(): string | undefined;
	/** Tokens of the output so far, estimated from the replica's finished streams; undefined if too few have finished. */
	tokensLikely(): number | undefined;
	/** Aborts the call and frees the replica's place. May be called repeatedly, and after the end. */
	close(): void;
}
