import type { Dialect } from "../dialects.ts";
import type { ReportedUsage } from "../usage.ts";

/** Parses a stream event by event: returns chunks, keeps the usage, and knows whether the stream is complete. */
export interface StreamReader<Chunk> {
	/** Returns the chunk of an event; undefined if it has nothing for the client. Throws UpstreamFailure. */
	accept(payload: string): Chunk | undefined;
	/** True after the end marker. */
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

/** Joins the chunks of a server that streams although no stream was requested. */
export interface Gathering<Answer, Chunk = OutputChunk> {
	readonly wire: StreamWire<Chunk>;
	/** Adds a chunk. Returns an upper bound of the bytes kept of it. */
	add(chunk: Chunk): number;
	answer(usage: ReportedUsage | undefined): Answer;
}

/** An open stream of an answer. Other replicas are tried until `next` returns the first chunks. */
export interface AnswerStream<Chunk> {
	/**
	 * Returns all chunks that arrived together, at least one; null when the answer is complete: finished, and followed by
	 * an end marker, silence or a close. Throws UpstreamFailure if it is not. Do not call it after an end.
	 */
	next(): Promise<readonly Chunk[] | null>;
	/**
	 * Together with `take` does what `next` does, with one promise less. Its result goes to `take`, its rejection to
	 * `brokeOff`.
	 */
	arrives(): Promise<ReadResult>;
	/** Returns what `next` would, or undefined if `arrives` must be called again. */
	take(arrived: ReadResult): readonly Chunk[] | null | undefined;
	/** Returns the end, for `take`, if the answer is complete; otherwise throws the failure. */
	brokeOff(error: unknown): ReadResult;
	/** Newest usage record. Final after `next` returned null; before, some dialects report a running count. */
	usage(): ReportedUsage | undefined;
	usageIsFinal(): boolean;
	/** Name of the replica in logs and metrics (`model#0`); undefined until one is chosen. */
	replica(): string | undefined;
	/** Tokens of the output so far, estimated from the replica's finished streams; undefined if there are too few. */
	tokensLikely(): number | undefined;
	/** Aborts the call and frees the replica's place. May be called again, and after the end. */
	close(): void;
}
