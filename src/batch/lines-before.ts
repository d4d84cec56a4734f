import { type BatchBooks, type ClaimedLine, RunLost } from "./batch-books.ts";
import type { Outcomes } from "./outcomes.ts";

/** Number of sealed parts of a file, and which of them are empty. */
export interface Sealed {
	readonly parts: number;
	readonly empty: ReadonlySet<number>;
}

/**
 * Reads the rows of earlier runs and returns the lines that have an outcome: those whose part is sealed. Frees every
 * other claimed line, so that it is sent again. Rejects with RunLost.
 */
export async function linesBefore(
	deps: { books: Pick<BatchBooks, "lines" | "reopen">; outcomes: Pick<Outcomes, "restore"> },
	{ batchId, run }: { readonly batchId: string; readonly run: number },
	sealed: { readonly output: Sealed; readonly error: Sealed },
): Promise<ReadonlySet<number>> {
	const { books, outcomes } = deps;
	const done = new Set<number>();
	let after = 0;
	for (;;) {
		const rows = await books.lines(batchId, after);
		const lost: ClaimedLine[] = [];
		for (const row of rows) {
			after = row.line;
			if (row.state === "free") continue;
			if (row.state !== "claimed" && row.part !== null && isSealed(row.part, sealed[row.state])) {
				done.add(row.line);
				outcomes.restore(row);
			} else lost.push({ line: row.line, id: row.id });
		}
		if (lost.length > 0 && !(await books.reopen(batchId, run, lost))) throw new RunLost();
		if (rows.length === 0) return done;
	}
}

function isSealed(part: number, { parts, empty }: Sealed): boolean {
	return part < parts && !empty.has(part);
}
