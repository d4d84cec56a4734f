import { createFairPool } from "../base/fair-pool.ts";
import { Fault } from "../base/fault.ts";
import type { Connection } from "../gateway/connection.ts";
import { addressNetwork } from "../keys/failed-attempts.ts";

/** Maximum concurrent requests to the console. A page with live updates keeps its request open for minutes. */
const REQUESTS_MAX = 4_096;

/** Limits concurrent requests. At the limit, the network with the most requests loses its oldest request. */
export function createConsoleRequestLimit() {
	const places = createFairPool({
		size: () => REQUESTS_MAX,
		share: () => 1,
		allYield: true,
		own: tooMany,
		full: tooMany,
	});
	return {
		/** Occupies a place. `end` is called if another network needs it. Returns the function that frees it. */
		enter({ address }: Pick<Connection, "address">, end: (why: Fault) => void): () => void {
			const sinceMs = performance.now();
			return places.enter(addressNetwork(address), { pace: () => sinceMs, giveUp: end });
		},
	};
}

function tooMany(): Fault {
	return new Fault("overloaded", "Too many pages are open. Close one of them.", { retryAfterS: 10 });
}
