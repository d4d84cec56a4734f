import type { Dialect } from "../dialect.ts";
import type { TokenUsage } from "../reply.ts";

/** Follows one stream, event by event: chunks out, usage aside, and whether it came to its proper end. */
export interface StreamReader<Chunk> {
	/** The chunk in the payload of one event, undefined if it holds nothing for the client. Throws UpstreamFailure. */
	accept(payload: string): Chunk | undefined;
	/** True once the end marker has passed. */
	ended(): boolean;
	/** Whether an end of the connection now is a proper end. */
	complete(): boolean;
	usage(): TokenUsage | undefined;
	usageIsFinal(): boolean;
}

/** What is particular to one kind of streamed answer: where it is asked for and how it is read. */
export interface StreamWire<Chunk> {
	/** Under the replica's base address. */
	readonly path: string;
	reader(dialect: Dialect): StreamReader<Chunk>;
	/** An answer that came whole instead of as events. */
	whole(text: string, dialect: Dialect): { chunk: Chunk; usage: TokenUsage | undefined };
}
