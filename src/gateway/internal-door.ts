import { Fault } from "../base/fault.ts";
import { newRequestId } from "../base/id.ts";
import { readInternalToken } from "../keys/internal-token.ts";
import type { Keyring } from "../keys/keyring.ts";
import type { Connection } from "./connection.ts";
import { errorResponse } from "./error-body.ts";
import { INFERENCE } from "./inference.ts";
import type { ServeDeps } from "./serve/context.ts";
import { createServeAs } from "./serve/serve-as.ts";

/**
 * What a console asks of this gateway: requests of the public interface in the name of a key, which a signed token names
 * instead of its secret. They go the public interface's whole way; who has no good token learns nothing.
 */
export function createInternalDoor(
	deps: ServeDeps & { keyring: Pick<Keyring, "load"> },
	options: { secret: string },
): (connection: Connection) => Promise<Response> {
	const serveAs = createServeAs(deps);
	return async (connection) => {
		const { request } = connection;
		const { pathname } = new URL(request.url);
		const endpoint = request.method === "POST" ? ENDPOINTS.get(pathname) : undefined;
		if (endpoint === undefined) return refused(new Fault("not_found", "There is no such endpoint."));
		const token = request.headers.get("authorization")?.replace(/^Bearer /, "") ?? "";
		const keyDigest = readInternalToken(options.secret, token, pathname, deps.clock.wallMs());
		if (keyDigest === undefined) return refused(new Fault("forbidden", "The token is not valid."));
		return serveAs(endpoint, keyDigest, connection);
	};
}

/** By path, and nothing else of an object's. */
const ENDPOINTS: ReadonlyMap<string, (typeof INFERENCE)[keyof typeof INFERENCE]> = new Map(Object.entries(INFERENCE));

function refused(fault: Fault): Response {
	return errorResponse(fault, newRequestId().requestId);
}

/** Whether a request shows an internal token. Secrets of keys begin otherwise. */
export function isInternal(request: Request): boolean {
	return request.headers.get("authorization")?.startsWith("Bearer tgi_") ?? false;
}
