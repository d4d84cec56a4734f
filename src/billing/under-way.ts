/**
 * Work that waits for Stripe: so much at once, each account's by itself. What hangs keeps its own place and nothing else,
 * and whoever begins work may go on before it ends.
 */
export interface UnderWay {
	/** How much may be begun now. */
	places(): number;
	/** Resolves when it has ended; `run` tells of its failures itself. */
	begin(run: () => Promise<void>): Promise<void>;
	/** Resolves when all that was begun has ended. */
	ended(): Promise<void>;
}

export function createUnderWay(most: number): UnderWay {
	const running = new Set<Promise<void>>();
	return {
		places: () => most - running.size,
		begin(run) {
			const work: Promise<void> = run().finally(() => running.delete(work));
			running.add(work);
			return work;
		},
		async ended() {
			await Promise.allSettled(running);
		},
	};
}
