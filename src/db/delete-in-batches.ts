/** Rows that one statement deletes: few, so that they are locked only briefly. */
export const BATCH_ROWS = 1_000;
/** Statements per call; the next call continues. */
const BATCHES_MAX = 500;

/**
 * Repeats a statement that deletes up to BATCH_ROWS rows until it deletes fewer. Returns the number of deleted rows.
 * Repeats, because with one batch per call the table might grow faster than it shrinks.
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
