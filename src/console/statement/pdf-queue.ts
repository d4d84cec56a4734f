import { ConsoleError } from "../console-error.ts";

/** Unfinished PDFs in all and per account; further ones are refused. */
const OPEN_MAX = 20;
const OPEN_OF_ACCOUNT_MAX = 4;
/** Cached PDFs of closed months; the least recently used is dropped. Each PDF is small, since its rows are limited. */
const KEPT_MAX = 200;

type Pdf = Uint8Array<ArrayBuffer>;

/** Makes PDFs one at a time in the order of requests, since all share one event loop. */
export function createPdfQueue() {
	const kept = new Map<string, Pdf>();
	let open: string[] = [];
	let last: Promise<unknown> = Promise.resolve();

	/** Marks the PDF as most recently used. */
	function keep(key: string, pdf: Pdf): Pdf {
		kept.delete(key);
		kept.set(key, pdf);
		for (const oldest of kept.keys()) if (kept.size > KEPT_MAX) kept.delete(oldest);
		return pdf;
	}

	return {
		/** `key` identifies the content in the cache; null: not cached. Fault overloaded if too many PDFs wait. */
		async make(accountId: string, key: string | null, make: () => Promise<Pdf>): Promise<Pdf> {
			const known = key === null ? undefined : kept.get(key);
			if (key !== null && known !== undefined) return keep(key, known);
			if (open.length >= OPEN_MAX || open.filter((id) => id === accountId).length >= OPEN_OF_ACCOUNT_MAX)
				throw new ConsoleError("overloaded", "Too many PDFs are being created. Try again in a few seconds.", {
					retryAfterS: 5,
				});
			open.push(accountId);
			const made = last.then(make);
			last = made.catch(() => {});
			try {
				return key === null ? await made : keep(key, await made);
			} finally {
				open = open.toSpliced(open.indexOf(accountId), 1);
			}
		},
	};
}
