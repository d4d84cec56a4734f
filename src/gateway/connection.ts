import type { Clock } from "../base/clock.ts";
import type { Language } from "../base/language.ts";
import { createMoments } from "../base/moments.ts";

/** What the server knows of the client's connection beside the request. */
export interface Connection {
	readonly request: Request;
	/** The client's address, as far as it can be trusted. */
	readonly address: string;
	/**
	 * Seconds without traffic after which the connection is cut, from now on; 0 for never. It sticks to the connection,
	 * so whoever raises it sets it back.
	 */
	setIdleTimeout(seconds: number): void;
	/** Of error messages; English without it. The console sets it for people. */
	readonly language?: Language | undefined;
	/** Of a line of a managed batch, which nobody sent over a connection. */
	readonly line?: BatchLineOrigin;
}

/** Which line it is, and the request that carries it. */
export interface BatchLineOrigin {
	readonly batchId: string;
	/** UUID: written down before the line is sent. */
	readonly requestUuid: string;
}

/**
 * What the server sets by itself between requests: longer than clients and balancers keep a connection that nobody uses (Caddy
 * 120 s, Go and Traefik 90, AWS, nginx and .NET 60). Who closes it is to be who sends next, or his request is lost on its way.
 */
export const IDLE_TIMEOUT_S = 125;
/** While a long answer in one piece is read. */
export const UNREAD_TIMEOUT_S = 10;
/** While a stream is open: comments keep an idle one alive, and a reader that takes nothing is thrown out. */
export const STREAM_TIMEOUT_S = 60;
/** While a body is on its way: the runtime cuts off who sends less than 16 KB/s for so long, without a word. */
export const BODY_TIMEOUT_S = 64;

/**
 * Connections that wait for an answer in one piece. It may take as long as the upstream's deadlines allow, and until then
 * the connection is silent: it is not cut. One that is answered within a moment need not be told.
 */
export interface SilentConnections {
	/** Gives the number that ends it. */
	begin(connection: Connection): number;
	end(connection: Connection, nth: number): void;
}

export function createSilentConnections(clock: Clock): SilentConnections {
	const moments = createMoments<Connection>(clock, (connection) => trySetIdleTimeout(connection, 0));
	return {
		begin: moments.begin,
		end(connection, nth) {
			if (moments.end(nth)) trySetIdleTimeout(connection, IDLE_TIMEOUT_S);
		},
	};
}

export function trySetIdleTimeout(connection: Connection, idleTimeoutS: number): void {
	try {
		connection.setIdleTimeout(idleTimeoutS);
	} catch {
		// It is gone, and nobody is left who could be cut off.
	}
}
