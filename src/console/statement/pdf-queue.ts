import { ConsoleError } from "../console-error.ts";

/** Unfinished PDFs of all accounts and of one; further ones are refused. */
const OPEN_MAX = 20;
const OPEN_OF_ACCOUNT_MAX = 4;
/** Cached PDFs of closed months; the least recently used is dropped. Rows, and so bytes, of each are limited. */
const KEPT_MAX = 200;

type Pdf = Uint8Array<ArrayBuffer>;

export interface PdfQueue {
	/** `key` identifies the content if the PDF is to be cached. Fault overloaded if too many wait. */
	make(accountId: string, key: string | null, make: () => Promise<Pdf>): Promise<Pdf>;
}

/** PDFs are made one at a time in the order of the requests, since all share one event loop. */
export function createPdfQueue(): PdfQueue {
	const kept = new Map<string, Pdf>();
	let open: string[] = [];
	let last: Promise<unknown> = Promise.resolve();

	/** Makes it the most recently used. */
	function keep(key: string, pdf: Pdf): Pdf {
		kept.delete(key);
		kept.set(key, pdf);
		for (const oldest of kept.keys()) if (kept.size > KEPT_MAX) kept.delete(oldest);
		return pdf;
	}

	return {
		async make(accountId, key, make) {
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
