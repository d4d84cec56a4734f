/**
 * Limits concurrent calls to Stripe, in total and to one per account. A call that hangs occupies only its own slot;
 * callers need not wait for it.
 */
export function createCallSlots(most: number) {
	const running = new Set<Promise<unknown>>();
	let taken = 0;

	async function some<Row>(read: (places: number) => Promise<readonly Row[]>, run: (row: Row) => Promise<void>) {
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
		 * Starts `run` for the rows that `read` returns; `read` receives the number of free slots. Resolves when all runs
		 * are done; `run` must report its own failures. Reserves slots during `read`, because calls of `begin` may overlap.
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
