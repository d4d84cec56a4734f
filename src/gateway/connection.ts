import type { Clock } from "../base/clock.ts";
import type { Language } from "../base/language.ts";
import { createLongRunWatch } from "../base/moments.ts";
import { chargeUnpaidRequest } from "../base/time-slice.ts";

export interface Connection {
	readonly request: Request;
	/** The client's address, as reported by the peer or a trusted proxy. */
	readonly address: string;
	/** Sets the idle timeout of the connection in seconds; 0: no timeout. */
	setIdleTimeout(seconds: number): void;
	/** Language of error texts; English by default. Set for requests from the console's pages. */
	readonly language?: Language | undefined;
	/** Set for a line of a batch, which has no client connection. */
	readonly line?: {
		readonly batchId: string;
		/** The request id of the line, which was stored before the line is sent. */
		readonly requestUuid: string;
	};
}

/**
 * Idle timeout between requests. Longer than the timeouts of clients and load balancers (Caddy 120 s, Go and Traefik
 * 90, AWS, nginx and .NET 60): if the server closed first, a request in transit could be lost.
 */
export const IDLE_TIMEOUT_S = 125;
/** Idle timeout of connections whose last request had no accepted key, so that they do not use up the open files. */
export const ANONYMOUS_TIMEOUT_S = 5;
/** Idle timeout while a client reads a long answer that is not a stream. */
export const UNREAD_TIMEOUT_S = 10;
/** Idle timeout of a stream. Keep-alive comments prevent it, so only clients that do not read are disconnected. */
export const STREAM_TIMEOUT_S = 60;
/** Idle timeout while a body arrives: the runtime disconnects clients that send less than 16 KB/s. */
export const BODY_TIMEOUT_S = 64;

/** The runtime receives up to this many bytes of a body before it is read. It cannot be told to receive fewer. */
export const UNREAD_BYTES_MAX = 1024 * 1024;
/** A declared body up to this size counts as memory once it was received, a larger one from its beginning. */
export const SMALL_BODY_BYTES = 64 * 1024;

/** Bytes of a body that the runtime may receive while its request waits; 0 if its declared length is small. */
export function unreadBytes({ headers }: Request): number {
	if (headers.has("transfer-encoding")) return UNREAD_BYTES_MAX;
	const declared = Number.parseInt(headers.get("content-length") ?? "0", 10);
	return declared > SMALL_BODY_BYTES ? Math.min(declared, UNREAD_BYTES_MAX) : 0;
}

/** True if the body was read whole, or dropped by its reader, which then keeps the lock. */
export const isReadWhole = ({ bodyUsed, body }: Request): boolean => bodyUsed && body?.locked === true;

/** Waits for the turn of a request that costs nothing; not with a large body, which would fill memory in that time. */
export const unpaidTurn = (owner: string, request: Request, ms?: number): Promise<void> | undefined =>
	unreadBytes(request) > 0 ? undefined : chargeUnpaidRequest(owner, request.signal, ms);

export type SilentConnections = ReturnType<typeof createSilentConnections>;

/** Removes the idle timeout of connections whose client waits long for an answer. */
export function createSilentConnections(clock: Clock) {
	const moments = createLongRunWatch<Connection>(clock, (connection) => trySetIdleTimeout(connection, 0));
	return {
		/** Returns a number that the caller passes to `end`. */
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
		// Throws if the connection is already closed, which has no timeout to set.
	}
}
