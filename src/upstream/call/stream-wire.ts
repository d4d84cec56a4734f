import type { Dialect } from "../dialects.ts";
import type { ReportedUsage } from "../usage.ts";

/** Parses one stream event by event: returns chunks, keeps the usage and knows whether the stream is complete. */
export interface StreamReader<Chunk> {
	/** Returns the chunk in one event's payload; undefined if it has nothing for the client. Throws UpstreamFailure. */
	accept(payload: string): Chunk | undefined;
	/** The end marker arrived. */
	ended(): boolean;
	/** Every requested choice has its finish reason. */
	finished(): boolean;
	/** The answer needs nothing more, however its connection ends. */
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
	/** Reads an answer that came unstreamed. */
	whole(text: string, dialect: Dialect): { chunk: Chunk; usage: ReportedUsage | undefined };
}

/** An open stream of one answer. Until `next` has returned the first chunks, it retries on other replicas. */
export interface AnswerStream<Chunk> {
	/**
	 * Returns all chunks that arrived together, at least one; null after the finish with the end marker or the usage,
	 * however the connection ends, or with silence. Throws UpstreamFailure in every other case. Not to be called after an
	 * end.
	 */
	next(): Promise<readonly Chunk[] | null>;
	/**
	 * With `take`, later calls of `next` without a promise of their own. Pass the result to `take`, a rejection to
	 * `brokeOff`.
	 */
	arrives(): Promise<Arrived>;
	/** Returns what `next` returns, or undefined if `arrives` must be called again. */
	take(arrived: Arrived): readonly Chunk[] | null | undefined;
	/** Returns the end, for `take`, if the answer is complete; otherwise throws the failure. */
	brokeOff(error: unknown): Arrived;
	/** The latest usage record: final after `next` returned null, a running count before that in some dialects. */
	usage(): ReportedUsage | undefined;
	usageIsFinal(): boolean;
	/** The replica's alias for logs and metrics (`model#0`); undefined until one is chosen. */
	replica(): string | undefined;
	/** Estimated tokens of the output so far, from finished streams of its replica; undefined if too few are known. */
	tokensLikely(): number | undefined;
	/** Aborts the upstream call and frees the replica's place. Further calls, and calls after the end, do nothing. */
	close(): void;
}
