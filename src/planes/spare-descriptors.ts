import type { Clock } from "../base/clock.ts";
import { canOpen } from "../base/descriptors.ts";
import type { Log } from "../base/log.ts";

/** Descriptors kept free for new clients, model servers and files; below it idle clients are disconnected. */
const SPARE_MIN = 16;
const LOOK_MS = 500;
/** Shortages may recur; the log gets one line per interval. */
const LINE_MS = 60_000;

export interface SpareDescriptors {
	/** While true, every answer must close its connection. */
	areShort(): boolean;
	stop(): void;
}

/**
 * Keeps descriptors free: when clients' kept connections use the last one, no new client or model server can connect.
 * Busy connections then end with their next answer, and connections idle until the next look are closed. A request sent
 * at that moment fails as at any server that closes idle connections.
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
