/** Of connections of which there is one at a time. */
export interface ReconnectBackoff {
	/** How long the next one has to wait, from now on, ms. */
	pauseMs(): number;
	/** It is made now. Who gave up in the pause has made none, and keeps the next one waiting for no longer. */
	made(): void;
}

const RECONNECT_S_MIN = 0.05;
const RECONNECT_S_MAX = 0.5;
/** Connections that are made further apart do not follow from one another. */
const CALM_MS = 1_000;

/**
 * Pause before a connection is tried again, seconds. The driver's own grows to 20 s, and for so long an instance would
 * stay away from a database that is back. Those who ask pace themselves.
 */
export function reconnectDelayS(failuresInRow: number): number {
	const mostS = Math.min(RECONNECT_S_MAX, RECONNECT_S_MIN * 2 ** failuresInRow);
	return mostS * (0.5 + Math.random() / 2);
}

/**
 * Whatever became of the connection before: refused, let in and broken, or closed without a word, as by a proxy behind which no server
 * is, on which the driver itself would try again without any pause.
 */
export function createReconnectBackoff(monotonicMs: () => number): ReconnectBackoff {
	let madeMs = Number.NEGATIVE_INFINITY;
	let inRow = 0;
	const isCalm = () => monotonicMs() - madeMs >= CALM_MS;
	return {
		pauseMs: () => (isCalm() ? 0 : Math.max(0, madeMs + reconnectDelayS(inRow) * 1_000 - monotonicMs())),
		made() {
			inRow = isCalm() ? 0 : inRow + 1;
			madeMs = monotonicMs();
		},
	};
}
