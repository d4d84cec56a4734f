/** Rows that one statement removes of what is old: each locks its rows for a moment only. */
export const BITE_ROWS = 1_000;
/** In a row. What is left goes at the job's next turn. */
const BITES_MAX = 500;

/**
 * Repeats what removes BITE_ROWS rows at most until it finds fewer: a job that removed so many a turn and no more would
 * leave a table that is filled faster to grow for ever. Gives their number.
 */
export async function removeInBites(bite: () => Promise<number>): Promise<number> {
	let removed = 0;
	for (let bites = 0; bites < BITES_MAX; bites++) {
		const rows = await bite();
		removed += rows;
		if (rows < BITE_ROWS) break;
	}
	return removed;
}
