import type { Arrived } from "../../src/upstream/call/stream-wire.ts";

/** The two steps of an AnswerStream whose chunks come out of a `next` that the test answers. */
export function inSteps<Chunk>(next: () => Promise<readonly Chunk[] | null>): {
	arrives(): Promise<Arrived>;
	take(): readonly Chunk[] | null;
	brokeOff(error: unknown): Arrived;
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
