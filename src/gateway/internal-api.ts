import { Elysia } from "elysia";
import { assert } from "../base/assert.ts";
import { Fault } from "../base/fault.ts";
import { newRequestId } from "../base/id.ts";
import { requestLanguage } from "../base/language.ts";
import { readInternalToken } from "../keys/internal-token.ts";
import type { Keyring } from "../keys/keyring.ts";
import type { KeyDigest } from "../keys/secret.ts";
import { type Connection, IDLE_TIMEOUT_S, trySetIdleTimeout } from "./connection.ts";
import { errorResponse } from "./error-body.ts";
import { addRoutes, createApiRoutes, createOpenEndpoint, type EndpointDeps } from "./routes.ts";
import { loadKey } from "./serve/authenticate.ts";

/**
 * Serves the console's requests to the public interface. A signed token names the API key instead of its secret.
 * Otherwise the requests are handled like public ones; an invalid token gets a 403.
 */
export function createInternalApi(
	deps: Pick<EndpointDeps, "serve" | "files" | "batches"> & { readonly keyring: Pick<Keyring, "load"> },
	{ secret }: { secret: string },
): (connection: Connection) => Promise<Response> {
	const { keyring } = deps;
	const { clock } = deps.serve;
	const connections = new WeakMap<Request, Connection>();
	function connectionOf(request: Request): Connection {
		const connection = connections.get(request);
		assert(connection !== undefined, "a request comes with its connection");
		return connection;
	}
	/** The API key per connection. The token is checked only at the start: the request may then run for hours. */
	const named = new WeakMap<Connection, KeyDigest>();
	function digestOf(connection: Connection): KeyDigest {
		const { headers, url } = connection.request;
		const token = headers.get("authorization")?.replace(/^Bearer /, "") ?? "";
		const found = named.get(connection) ?? readInternalToken(secret, token, new URL(url).pathname, clock.wallMs());
		if (found === undefined) throw new Fault("forbidden", "Invalid token.");
		named.set(connection, found);
		return found;
	}
	const app = new Elysia({ handler: { standardHostname: false } });
	addRoutes(
		app,
		createOpenEndpoint(connectionOf),
		createApiRoutes({ ...deps, connectionOf }, async (connection) => {
			const key = await loadKey(keyring, digestOf(connection), clock);
			trySetIdleTimeout(connection, IDLE_TIMEOUT_S);
			return key;
		}),
	);
	app.all("/*", () => errorResponse(new Fault("not_found", "Unknown endpoint."), newRequestId().requestId), {
		parse: "none",
	});
	return async (asked) => {
		const { request, address } = asked;
		connections.set(request, {
			request,
			address,
			language: requestLanguage(request.headers),
			setIdleTimeout: (seconds) => asked.setIdleTimeout(seconds),
		});
		return app.fetch(request);
	};
}

/** True if the request has an internal token; API keys have another prefix. */
export function hasInternalToken(request: Request): boolean {
	return request.headers.get("authorization")?.startsWith("Bearer tgi_") ?? false;
}
