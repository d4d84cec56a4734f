import type { Dialect } from "../dialects.ts";
import type { ReportedUsage } from "../usage.ts";

/** Parses a stream event by event: returns chunks, keeps the usage, and tells whether the stream is complete. */
export interface StreamReader<Chunk> {
	/** Returns the chunk of an event's payload; undefined if it has nothing for the client. Throws UpstreamFailure. */
	accept(payload: string): Chunk | undefined;
	/** True after the end marker. */
	ended(): boolean;
	/** True if every requested choice has its finish reason. */
	finished(): boolean;
	/** True if the answer lacks nothing, however its connection ends. */
	complete(): boolean;
	usage(): ReportedUsage | undefined;
	usageIsFinal(): boolean;
}

export interface Arrived {
	readonly done: boolean;
	readonly value?: Uint8Array | undefined;
}

export interface OutputChunk {
	readonly outputBytes: number;
}

export interface StreamWire<Chunk> {
	readonly path: string;
	reader(dialect: Dialect): StreamReader<Chunk>;
	/** Reads an answer that was not streamed. */
	whole(text: string, dialect: Dialect): { chunk: Chunk; usage: ReportedUsage | undefined };
}

/** Puts the chunks of a stream together, for a server that streams although no stream was requested. */
export interface Gathering<Answer, Chunk = OutputChunk> {
	readonly wire: StreamWire<Chunk>;
	/** Adds a chunk. Returns the most bytes that it keeps of it. */
	add(chunk: Chunk): number;
	answer(usage: ReportedUsage | undefined): Answer;
}

/** An open stream of an answer. Until `next` returns the first chunks, other replicas are tried. */
export interface AnswerStream<Chunk> {
	/**
	 * Returns all chunks that arrived together, at least one. Returns null when the answer is complete: finished, with
	 * end marker, usage or silence after it. Throws UpstreamFailure otherwise. Not to be called after an end.
	 */
	next(): Promise<readonly Chunk[] | null>;
	/**
	 * With `take`, replaces later calls of `next` without another promise. Pass its result to `take`, its rejection to
	 * `brokeOff`.
	 */
	arrives(): Promise<Arrived>;
	/** Returns what `next` returns, or undefined if `arrives` must be called again. */
	take(arrived: Arrived): readonly Chunk[] | null | undefined;
	/** If the answer is complete, returns the end for `take`; otherwise throws the failure. */
	brokeOff(error: unknown): Arrived;
	/** Latest usage record: final after `next` returned null; before that, in some dialects, a running count. */
	usage(): ReportedUsage | undefined;
	usageIsFinal(): boolean;
	/** Alias of the replica for logs and metrics (`model#0`); undefined until one is chosen. */
	replica(): string | undefined;
	/** Estimated tokens of the output so far, from finished streams of the replica; undefined if there are too few. */
	tokensLikely(): number | undefined;
	/** Aborts the call and frees the replica's place. Repeatable, also after the end. */
	close(): void;
}
