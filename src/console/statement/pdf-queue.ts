import { type Clock, withDeadline } from "../../base/clock.ts";
import { ConsoleError } from "../console-error.ts";

/** PDFs made at once in this process, each of another account. */
const AT_ONCE = 2;
/** PDFs that wait, of all accounts and of one; further ones are refused. */
const WAITING_MAX = 20;
const WAITING_OF_ACCOUNT_MAX = 4;
const WAIT_MS = 15_000;
/** Cached PDFs of closed months, least recently used dropped. */
const KEPT_BYTES_MAX = 16 * 1024 * 1024;

type Pdf = Uint8Array<ArrayBuffer>;

interface Waiting {
	readonly accountId: string;
	readonly begin: () => void;
}

export interface PdfQueue {
	/** `key` identifies the content if the PDF is to be cached. Fault overloaded if too many wait, or for too long. */
	make(accountId: string, key: string | null, make: () => Promise<Pdf>): Promise<Pdf>;
}

/** PDFs are made in the order of the requests, one per account at a time. */
export function createPdfQueue(clock: Clock): PdfQueue {
	const running = new Set<string>();
	const kept = new Map<string, Pdf>();
	let waiting: Waiting[] = [];
	let keptBytes = 0;

	async function place(accountId: string): Promise<void> {
		const { promise, resolve } = Promise.withResolvers<void>();
		const own: Waiting = { accountId, begin: resolve };
		const ofAccount = waiting.filter((one) => one.accountId === accountId);
		if (waiting.length >= WAITING_MAX || ofAccount.length >= WAITING_OF_ACCOUNT_MAX) throw busy();
		waiting.push(own);
		next();
		try {
			await withDeadline(clock, promise, WAIT_MS, busy);
		} catch (error) {
			waiting = waiting.filter((one) => one !== own);
			throw error;
		}
	}
	function next(): void {
		if (running.size >= AT_ONCE) return;
		const chosen = waiting.find(({ accountId }) => !running.has(accountId));
		if (chosen === undefined) return;
		waiting = waiting.filter((one) => one !== chosen);
		running.add(chosen.accountId);
		chosen.begin();
		next();
	}
	function keep(key: string, pdf: Pdf): void {
		if (kept.has(key) || pdf.length > KEPT_BYTES_MAX) return;
		kept.set(key, pdf);
		keptBytes += pdf.length;
		for (const [oldest, { length }] of kept) {
			if (keptBytes <= KEPT_BYTES_MAX) return;
			kept.delete(oldest);
			keptBytes -= length;
		}
	}

	return {
		async make(accountId, key, make) {
			const known = key === null ? undefined : kept.get(key);
			if (key !== null && known !== undefined) {
				kept.delete(key);
				kept.set(key, known);
				return known;
			}
			await place(accountId);
			try {
				const pdf = await make();
				if (key !== null) keep(key, pdf);
				return pdf;
			} finally {
				running.delete(accountId);
				next();
			}
		},
	};
}

const busy = () =>
	new ConsoleError("overloaded", "Too many PDFs are being made. Please try again.", { retryAfterS: 5 });
