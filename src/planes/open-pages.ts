import { createFairPool } from "../base/fair-pool.ts";
import { Fault } from "../base/fault.ts";
import type { Connection } from "../gateway/connection.ts";
import { addressNetwork } from "../keys/failed-attempts.ts";

/** Most open requests to the console. Live pages hold a place for minutes. */
const REQUESTS_MAX = 4_096;

/** Places for open requests, divided among networks. The network that has most loses its oldest one to another. */
export function createOpenPages() {
	const places = createFairPool({
		size: () => REQUESTS_MAX,
		share: () => 1,
		allYield: true,
		own: tooMany,
		full: tooMany,
	});
	return {
		/** Takes a place. `end` is called if another network needs it. The returned function frees it. */
		enter({ address }: Pick<Connection, "address">, end: (why: Fault) => void): () => void {
			const sinceMs = performance.now();
			return places.enter(addressNetwork(address), { pace: () => sinceMs, giveUp: end });
		},
	};
}

function tooMany(): Fault {
	return new Fault("overloaded", "Too many pages are open. Close one of them.", { retryAfterS: 10 });
}
