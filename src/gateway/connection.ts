import type { Clock } from "../base/clock.ts";
import type { Language } from "../base/language.ts";
import { createLongRunWatch } from "../base/moments.ts";

export interface Connection {
	readonly request: Request;
	/** The client's address, as far as it can be trusted. */
	readonly address: string;
	/** Sets the idle timeout in seconds; 0: none. */
	setIdleTimeout(seconds: number): void;
	/** Language of error texts, English by default. The console sets it for people. */
	readonly language?: Language | undefined;
	/** Set for a line of a batch, which has no connection of a client. */
	readonly line?: {
		readonly batchId: string;
		/** Id of the line's request, stored before the line is sent. */
		readonly requestUuid: string;
	};
}

/**
 * Idle timeout between requests. Longer than those of clients and load balancers (Caddy 120 s, Go and Traefik 90, AWS,
 * nginx and .NET 60): if the server closed first, a request in transit could be lost.
 */
export const IDLE_TIMEOUT_S = 125;
/** Idle timeout while a client reads a long answer. */
export const UNREAD_TIMEOUT_S = 10;
/** Idle timeout of a stream. Comments keep a quiet one open; a client that does not read is disconnected. */
export const STREAM_TIMEOUT_S = 60;
/** Idle timeout while a body arrives: the runtime disconnects clients that send less than 16 KB/s. */
export const BODY_TIMEOUT_S = 64;

export type SilentConnections = ReturnType<typeof createSilentConnections>;

/** Removes the idle timeout of connections that wait long for an answer. */
export function createSilentConnections(clock: Clock) {
	const moments = createLongRunWatch<Connection>(clock, (connection) => trySetIdleTimeout(connection, 0));
	return {
		/** Returns a number, with which the caller calls `end`. */
		begin: moments.begin,
		end(connection: Connection, nth: number) {
			if (moments.end(nth)) trySetIdleTimeout(connection, IDLE_TIMEOUT_S);
		},
	};
}

export function trySetIdleTimeout(connection: Connection, idleTimeoutS: number): void {
	try {
		connection.setIdleTimeout(idleTimeoutS);
	} catch {
		// The connection is already closed.
	}
}
