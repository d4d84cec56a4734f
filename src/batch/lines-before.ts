import type { BatchBooks } from "./batch-books.ts";
import type { LinesBefore } from "./line-source.ts";
import type { Outcomes } from "./outcomes.ts";

/** What is sealed of a file: so many parts, without those that hold nothing. */
export interface Sealed {
	readonly parts: number;
	readonly empty: ReadonlySet<number>;
}

/**
 * What earlier runs left: a line whose part is sealed has its outcome; one that was claimed and has none in a sealed part
 * may have been carried out, and is never sent again.
 */
export async function linesBefore(
	books: Pick<BatchBooks, "lines">,
	batchId: string,
	sealed: { readonly output: Sealed; readonly error: Sealed },
	outcomes: Pick<Outcomes, "restore">,
): Promise<LinesBefore> {
	const done = new Set<number>();
	const cut = new Map<number, string>();
	let after = 0;
	for (;;) {
		const rows = await books.lines(batchId, after);
		for (const row of rows) {
			after = row.line;
			if (row.state === "free") continue;
			if (row.state !== "claimed" && row.part !== null && isSealed(row.part, sealed[row.state])) {
				done.add(row.line);
				outcomes.restore(row);
			} else cut.set(row.line, row.id);
		}
		if (rows.length === 0) return { done, cut };
	}
}

function isSealed(part: number, { parts, empty }: Sealed): boolean {
	return part < parts && !empty.has(part);
}
