import { createFairPool } from "../base/fair-pool.ts";
import { Fault } from "../base/fault.ts";
import type { Connection } from "../gateway/connection.ts";
import { addressNetwork } from "../keys/failed-attempts.ts";

/** Maximum concurrent requests to the console. A page with live updates keeps its request open for minutes. */
const REQUESTS_MAX = 4_096;
/** Megabytes of answers that clients have not read completely. */
const ANSWER_MB_MAX = 256;

/** Limits concurrent requests. At the limit, the network with the most requests loses its oldest request. */
export function createConsoleRequestLimit() {
	const pool = (size: number) =>
		createFairPool({ size: () => size, share: () => 1, allYield: true, own: tooMany, full: tooMany });
	const places = pool(REQUESTS_MAX);
	const answers = pool(ANSWER_MB_MAX * 1024 * 1024);
	return {
		/** Occupies a place. `end` is called if another network needs it. Returns the function that frees it. */
		enter({ address }: Pick<Connection, "address">, end: (why: Fault) => void): () => void {
			const sinceMs = performance.now();
			return places.enter(addressNetwork(address), { pace: () => sinceMs, giveUp: end });
		},
		/** Counts the bytes of an answer, like `enter`. Fault overloaded if its network has most of all. */
		answer({ address }: Pick<Connection, "address">, bytes: number, end: (why: Fault) => void): () => void {
			const sinceMs = performance.now();
			return answers.enter(addressNetwork(address), { pace: () => sinceMs, giveUp: end }, bytes);
		},
	};
}

function tooMany(): Fault {
	return new Fault("overloaded", "Too many pages are open. Close one of them.", { retryAfterS: 10 });
}
