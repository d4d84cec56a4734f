import type { Clock } from "../base/clock.ts";
import { canOpen } from "../base/descriptors.ts";
import type { Log } from "../base/log.ts";

/** So many are left for new clients, model servers and files, or clients that ask for nothing are let go. */
const SPARE_MIN = 16;
const LOOK_MS = 500;
/** They may be short again and again: a line so often. */
const LINE_MS = 60_000;

export interface SpareDescriptors {
	/** While it is true every answer is to be the last one of its connection. */
	areShort(): boolean;
	stop(): void;
}

/**
 * Clients keep connections for minutes. Where these take the last descriptor nobody else is let in, and no model server
 * can be asked: so connections that are in use end with their next answer, and those that lie idle until the next look are
 * closed. A client whose request meets that half-way has been idle for as long, and sees what he does at any server that closes.
 */
export function keepDescriptorsSpare(
	{ clock, log }: { clock: Clock; log: Log },
	server: { closeIdleConnections(): number },
): SpareDescriptors {
	let isShort = false;
	let closed = 0;
	let saidAtMs = Number.NEGATIVE_INFINITY;
	let cancel = clock.after(LOOK_MS, look);

	function look(): void {
		cancel = clock.after(LOOK_MS, look);
		const wasShort = isShort;
		isShort = !canOpen(SPARE_MIN);
		if (isShort && wasShort) closed += server.closeIdleConnections();
		if (isShort && clock.monotonicMs() - saidAtMs >= LINE_MS) say();
	}

	function say(): void {
		log.warn("nearly all files that this process may open are in use (ulimit -n): clients are let go", {
			closedBefore: closed,
		});
		closed = 0;
		saidAtMs = clock.monotonicMs();
	}

	return { areShort: () => isShort, stop: () => cancel() };
}
