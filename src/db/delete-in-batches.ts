/** Most rows that one statement deletes, so that it locks them for a moment only. */
export const BATCH_ROWS = 1_000;
/** Per call. The job's next call deletes the rest. */
const BATCHES_MAX = 500;

/**
 * Repeats a statement that deletes at most BATCH_ROWS rows until it deletes fewer; returns the number of rows. With one
 * batch per call, a table that fills faster would grow for ever.
 */
export async function deleteInBatches(deleteBatch: () => Promise<number>): Promise<number> {
	let removed = 0;
	for (let batch = 0; batch < BATCHES_MAX; batch++) {
		const rows = await deleteBatch();
		removed += rows;
		if (rows < BATCH_ROWS) break;
	}
	return removed;
}
