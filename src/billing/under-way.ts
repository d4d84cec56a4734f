/**
 * Limits concurrent calls to Stripe, one per account. A hanging call occupies only its own place, and the caller may go
 * on before it ends.
 */
export function createUnderWay(most: number) {
	const running = new Set<Promise<unknown>>();
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
		await Promise.all(rows.map((row) => run(row).finally(() => (taken -= 1))));
	}

	return {
		/**
		 * Starts the items that `read` returns, given the number of free places; `run` reports its own failures. Resolves
		 * when they are done. Places are taken while `read` runs, since the next call may come before it resolves.
		 */
		begin<Row>(read: (places: number) => Promise<readonly Row[]>, run: (row: Row) => Promise<void>): Promise<void> {
			const work: Promise<void> = some(read, run).finally(() => running.delete(work));
			running.add(work);
			return work;
		},
		async ended(): Promise<void> {
			await Promise.allSettled(running);
		},
	};
}
