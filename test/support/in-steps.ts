import type { ReadResult } from "../../src/upstream/call/stream-wire.ts";

/** Both reading methods of an AnswerStream, based on a `next` that the test controls. */
export function answerStreamOf<Chunk>(next: () => Promise<readonly Chunk[] | null>): {
	arrives(): Promise<ReadResult>;
	take(): readonly Chunk[] | null;
	brokeOff(error: unknown): ReadResult;
} {
	let came: readonly Chunk[] | null = null;
	return {
		async arrives() {
			came = await next();
			return { done: came === null };
		},
		take: () => came,
		brokeOff(error) {
			throw error;
		},
	};
}
