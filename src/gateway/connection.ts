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
	/** The id of its first attempt, where that was written down before it is sent; see `firstAttemptUuid`. */
	readonly requestUuid?: string;
	/** Of a line of a managed batch, which nobody sent over a connection. */
	readonly line?: BatchLineOrigin;
}

/** The same client's, for a request whose first attempt has an id already. */
export function connectionWith(
	connection: Connection,
	request: Request,
	requestUuid: string,
): Connection & { readonly requestUuid: string } {
	return {
		request,
		requestUuid,
		address: connection.address,
		setIdleTimeout: (seconds) => connection.setIdleTimeout(seconds),
	};
}

/** Which line it is, and the request that carries it. */
export interface BatchLineOrigin {
	readonly batchId: string;
	/** UUID: written down before the line is sent. */
	readonly requestUuid: string;
}

/** What the server sets by itself between requests. */
export const IDLE_TIMEOUT_S = 10;
/** While a stream is open: comments keep an idle one alive, and a reader that takes nothing is thrown out. */
export const STREAM_TIMEOUT_S = 60;
