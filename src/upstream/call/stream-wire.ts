import type { Dialect } from "../dialects.ts";
import type { ReportedUsage } from "../usage.ts";

/** Follows one stream, event by event: chunks out, usage aside, and whether it came to its proper end. */
export interface StreamReader<Chunk> {
	/** The chunk in the payload of one event, undefined if it holds nothing for the client. Throws UpstreamFailure. */
	accept(payload: string): Chunk | undefined;
	/** True once the end marker has passed. */
	ended(): boolean;
	/** Whether an end of the connection now is a proper end. */
	complete(): boolean;
	usage(): ReportedUsage | undefined;
	usageIsFinal(): boolean;
}

/** A piece of a body, or its end. */
export interface Arrived {
	readonly done: boolean;
	readonly value?: Uint8Array | undefined;
}

/** A chunk of a stream, with the bytes of generated output in it. */
export interface OutputChunk {
	readonly outputBytes: number;
}

/** What is particular to one kind of streamed answer: where it is asked for and how it is read. */
export interface StreamWire<Chunk> {
	/** Under the replica's base address. */
	readonly path: string;
	reader(dialect: Dialect): StreamReader<Chunk>;
	/** An answer that came whole instead of as events. */
	whole(text: string, dialect: Dialect): { chunk: Chunk; usage: ReportedUsage | undefined };
}

/**
 * An open stream of one answer. Replays on other replicas happen inside `next` until the first chunk was returned.
 */
export interface AnswerStream<Chunk> {
	/**
	 * All chunks that arrived together (at least one), or null at a proper end: finish seen and the upstream's end
	 * marker, or finish and usage seen, however the connection ended then. Throws UpstreamFailure in every other case (died, silent, error event …).
	 * Not to be called again after null or a throw, nor while a call is pending.
	 */
	next(): Promise<readonly Chunk[] | null>;
	/**
	 * The same after the first `next`, in two steps: for who reads on, `await arrives()` costs no promise but the read's own.
	 * Resolves when something has arrived, which is to be taken at once. Rejects with what `broke` makes the failure of.
	 */
	arrives(): Promise<Arrived>;
	/** What `next` gives; undefined if nothing of it is for the client, then `arrives` is to be called again. */
	take(arrived: Arrived): readonly Chunk[] | null | undefined;
	/**
	 * What a rejection of `arrives` stands for: the end, if nothing is missing before it, which is to be taken; throws the
	 * failure otherwise.
	 */
	brokeOff(error: unknown): Arrived;
	/** The last usage record so far: final after `next` gave null, running before that where the dialect has it. */
	usage(): ReportedUsage | undefined;
	/** True once `usage()` is the upstream's final count. */
	usageIsFinal(): boolean;
	/** The replica's alias for logs and metrics (`model#0`), undefined before one was chosen. */
	replica(): string | undefined;
	/** Likely tokens of the output so far, as finished streams of its replica tell; undefined if they do not. */
	tokensLikely(): number | undefined;
	/** Aborts the upstream call, frees the replica's place; harmless when repeated or after the end. */
	close(): void;
}
