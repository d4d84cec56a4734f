/**
 * Work that waits for Stripe: so much at once, each account's by itself. What hangs keeps its own place and nothing else,
 * and whoever begins work may go on before it ends.
 */
export interface UnderWay {
	/**
	 * Begins what `read` gives, for which it is told how many places there are; `run` tells of its failures itself. Resolves
	 * when that has ended. While it is being read its places are taken: the next call may come before the database answers.
	 */
	begin<Row>(read: (places: number) => Promise<readonly Row[]>, run: (row: Row) => Promise<void>): Promise<void>;
	/** Resolves when all that was begun has ended. */
	ended(): Promise<void>;
}

export function createUnderWay(most: number): UnderWay {
	const running = new Set<Promise<void>>();
	let taken = 0;

	async function some<Row>(
		read: (places: number) => Promise<readonly Row[]>,
		run: (row: Row) => Promise<void>,
	): Promise<void> {
		const places = most - taken;
		if (places <= 0) return;
		taken += places;
		let rows: readonly Row[] = [];
		try {
			rows = await read(places);
		} finally {
			taken -= places - rows.length;
		}
		await Promise.all(
			rows.map((row) =>
				run(row).finally(() => {
					taken -= 1;
				}),
			),
		);
	}

	return {
		begin(read, run) {
			const work: Promise<void> = some(read, run).finally(() => running.delete(work));
			running.add(work);
			return work;
		},
		async ended() {
			await Promise.allSettled(running);
		},
	};
}
