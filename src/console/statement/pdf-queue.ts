import type { Clock } from "../../base/clock.ts";
import { createFairQueue } from "../../base/fair-pool.ts";
import { ConsoleError } from "../console-error.ts";

/** Limits of concurrent PDFs: two in total, one per account. They are drawn in slices of the event loop. */
const QUEUE = { places: 2, ownMax: 1, waitingMax: 40, waitMsMax: 10_000, full: tooMany };
/** Most cached PDFs; the least recently used is dropped. Each PDF is small, since its number of rows is limited. */
const KEPT_MAX = 200;

type Pdf = Uint8Array<ArrayBuffer>;

/** Draws PDFs, taking turns among accounts. A cached PDF is not drawn again. */
export function createPdfQueue(deps: { clock: Clock }) {
	const kept = new Map<string, Pdf>();
	const queue = createFairQueue(deps, QUEUE);

	function keep(key: string, pdf: Pdf): Pdf {
		kept.delete(key);
		kept.set(key, pdf);
		for (const oldest of kept.keys()) if (kept.size > KEPT_MAX) kept.delete(oldest);
		return pdf;
	}

	return {
		make: (accountId: string, key: string, make: () => Promise<Pdf>): Promise<Pdf> =>
			queue.run(accountId, async () => keep(key, kept.get(key) ?? (await make()))),
	};
}

function tooMany(): ConsoleError {
	return new ConsoleError("overloaded", "Too many PDFs are being created. Try again in a few seconds.", {
		retryAfterS: 5,
	});
}
