export type ReconnectBackoff = ReturnType<typeof createReconnectBackoff>;

const RECONNECT_S_MIN = 0.05;
const RECONNECT_S_MAX = 0.5;
/** Milliseconds between two attempts after which they count as unrelated. */
const CALM_MS = 1_000;

/**
 * Seconds before the next attempt to connect. The driver's pauses grow to 20 s, in which an instance would not notice
 * that the database is back.
 */
export function reconnectDelayS(failuresInRow: number): number {
	const mostS = Math.min(RECONNECT_S_MAX, RECONNECT_S_MIN * 2 ** failuresInRow);
	return mostS * (0.5 + Math.random() / 2);
}

/**
 * Pauses between a client's connections, however the previous one ended. The driver does not pause after a connection
 * that closed without an error, as proxies do if they have no server.
 */
export function createReconnectBackoff(monotonicMs: () => number) {
	let madeMs = Number.NEGATIVE_INFINITY;
	let inRow = 0;
	const isCalm = () => monotonicMs() - madeMs >= CALM_MS;
	return {
		/** Milliseconds until the next connection may be opened. */
		pauseMs: () => (isCalm() ? 0 : Math.max(0, madeMs + reconnectDelayS(inRow) * 1_000 - monotonicMs())),
		/** Records that a connection opens. Attempts whose caller stopped waiting before do not lengthen the next pause. */
		made() {
			inRow = isCalm() ? 0 : inRow + 1;
			madeMs = monotonicMs();
		},
	};
}
