export type ReconnectBackoff = ReturnType<typeof createReconnectBackoff>;

const RECONNECT_S_MIN = 0.05;
const RECONNECT_S_MAX = 0.5;
/** Connections that are opened further apart than this count as independent. */
const CALM_MS = 1_000;

/**
 * Pause before the next attempt to connect, seconds. The driver's own grows to 20 s, during which an instance would
 * miss a database that is available again. Callers have rate limits of their own.
 */
export function reconnectDelayS(failuresInRow: number): number {
	const mostS = Math.min(RECONNECT_S_MAX, RECONNECT_S_MIN * 2 ** failuresInRow);
	return mostS * (0.5 + Math.random() / 2);
}

/**
 * Pauses between the connections of one client, which has one at a time, however the former ended: refused, broken, or
 * closed without an error, as by a proxy without a server, where the driver itself would retry without a pause.
 */
export function createReconnectBackoff(monotonicMs: () => number) {
	let madeMs = Number.NEGATIVE_INFINITY;
	let inRow = 0;
	const isCalm = () => monotonicMs() - madeMs >= CALM_MS;
	return {
		/** Time until the next connection may be opened. */
		pauseMs: () => (isCalm() ? 0 : Math.max(0, madeMs + reconnectDelayS(inRow) * 1_000 - monotonicMs())),
		/** Call when a connection is opened. A caller that gives up during the pause does not lengthen the next one. */
		made() {
			inRow = isCalm() ? 0 : inRow + 1;
			madeMs = monotonicMs();
		},
	};
}
