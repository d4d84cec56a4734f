import { createFairPool } from "../base/fair-pool.ts";
import { Fault } from "../base/fault.ts";
import type { Connection } from "../gateway/connection.ts";
import { networkOf } from "../keys/failed-attempts.ts";

/** Open requests to the console, including live pages, each of which holds a place for minutes. */
const REQUESTS_MAX = 4_096;

/** Places of open requests, divided among networks: the one that has most loses its oldest to another. */
export function createOpenPages() {
	const places = createFairPool({
		size: () => REQUESTS_MAX,
		share: () => 1,
		allYield: true,
		own: tooMany,
		full: tooMany,
	});
	return {
		/** Takes a place. `end` is called if another network needs it. Returns the function that frees it. */
		enter({ address }: Pick<Connection, "address">, end: (why: Fault) => void): () => void {
			const sinceMs = performance.now();
			return places.enter(networkOf(address), { pace: () => sinceMs, giveUp: end });
		},
	};
}

function tooMany(): Fault {
	return new Fault("overloaded", "Too many pages are open. Close one of them.", { retryAfterS: 10 });
}
