import type { AnswerSpool } from "./answer-spool.ts";
import type { BatchBooks } from "./batch-books.ts";
import type { LinesBefore } from "./line-source.ts";
import type { Outcomes } from "./outcomes.ts";

/** What is sealed of a file: so many parts, without those that hold nothing. */
export interface Sealed {
	readonly parts: number;
	readonly empty: ReadonlySet<number>;
}

/** Outcomes that were put by are sealed when they are so much. */
const SEAL_CHARS = 4 * 1024 * 1024;

/**
 * What earlier runs left: a line whose part is sealed has its outcome. One that was claimed and has none in a sealed part
 * has the one that its request left in this machine's spool; without that it may have been carried out, and is never sent
 * again. Resolves once what lay in the spool is sealed; rejects as `Outcomes.flush`.
 */
export async function linesBefore(
	deps: { books: Pick<BatchBooks, "lines">; spool: AnswerSpool; outcomes: Outcomes },
	{ batchId, run }: { readonly batchId: string; readonly run: number },
	sealed: { readonly output: Sealed; readonly error: Sealed },
	signal: AbortSignal,
): Promise<LinesBefore> {
	const { books, spool, outcomes } = deps;
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
		if (rows.length === 0) break;
	}
	for await (const { line, id, answer } of spool.left(batchId, run)) {
		// What another request left of it does not count: this one may have been carried out.
		if (cut.get(line) !== id) continue;
		cut.delete(line);
		if (answer === undefined) outcomes.release(line, id);
		else {
			done.add(line);
			outcomes.add({ line, id, ...answer });
		}
		if (outcomes.bytes() >= SEAL_CHARS) await outcomes.flush(signal);
	}
	await outcomes.flush(signal);
	spool.taken(batchId, run);
	return { done, cut };
}

function isSealed(part: number, { parts, empty }: Sealed): boolean {
	return part < parts && !empty.has(part);
}
