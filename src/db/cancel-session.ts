import { Socket } from "node:net";
import type { DatabaseHost } from "./address.ts";

/** Code of a cancel request in PostgreSQL's protocol. The request needs neither sign-in nor TLS. */
const CANCEL_CODE = 80_877_102;
const CANCEL_BYTES = 16;
const CANCEL_MS_MAX = 1_000;

/**
 * Requests that the server cancel what the session of `query` runs. Without it, a statement would run on after its
 * client gave up. A commit that waits for a standby has no deadline, and the server does not notice that the client
 * left. Resolves when the server received the request, or when it could not be sent.
 */
export function cancelSession({ host, port }: DatabaseHost, query: object): Promise<void> {
	// Read through a cast: the driver's types lack the cancel key of a query's session.
	const key = (query as { state?: { pid: number | null; secret: number | null } })?.state;
	if (key === undefined || key.pid === null || key.secret === null) return Promise.resolve();
	const request = Buffer.alloc(CANCEL_BYTES);
	for (const [place, value] of [CANCEL_BYTES, CANCEL_CODE, key.pid, key.secret].entries())
		request.writeUInt32BE(value, 4 * place);
	const { promise, resolve } = Promise.withResolvers<void>();
	const socket = new Socket();
	socket.on("error", () => {});
	socket.once("close", () => resolve());
	socket.setTimeout(CANCEL_MS_MAX, () => socket.destroy());
	socket.connect(host.startsWith("/") ? { path: `${host}/.s.PGSQL.${port}` } : { host, port }, () =>
		socket.end(request),
	);
	return promise;
}
