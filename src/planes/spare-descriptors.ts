import { closeSync, openSync } from "node:fs";
import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";

/** So many are left for new clients, model servers and files, or clients that ask for nothing are let go. */
const SPARE_MIN = 16;
const LOOK_MS = 1_000;

/**
 * Clients keep connections for minutes. Where these take the last descriptor nobody else is let in, and no model server
 * can be asked: so who has none under way is sent away, as he is at any other moment by a server that closes, and comes back.
 */
export function keepDescriptorsSpare(
	{ clock, log }: { clock: Clock; log: Log },
	server: { closeIdleConnections(): number },
): { stop(): void } {
	let isShort = false;
	let cancel = clock.after(LOOK_MS, look);

	function look(): void {
		cancel = clock.after(LOOK_MS, look);
		const wasShort = isShort;
		isShort = !areSpare();
		if (!isShort) return;
		const closed = server.closeIdleConnections();
		if (!wasShort)
			log.warn("nearly all files that this process may open are in use (ulimit -n): idle clients are let go", {
				closed,
			});
	}

	return { stop: () => cancel() };
}

/** The system does not tell how many are left; opening them does, in a few microseconds. */
function areSpare(): boolean {
	const opened: number[] = [];
	try {
		while (opened.length < SPARE_MIN) opened.push(openSync("/dev/null", "r"));
		return true;
	} catch {
		return false;
	} finally {
		for (const file of opened) closeSync(file);
	}
}
