import { Elysia } from "elysia";
import { assert } from "../base/assert.ts";
import { Fault } from "../base/fault.ts";
import { newRequestId } from "../base/id.ts";
import { languageOf } from "../base/language.ts";
import { checkKey } from "../keys/access.ts";
import { invalidApiKey } from "../keys/bearer.ts";
import type { KeyDigest } from "../keys/digest.ts";
import { readInternalToken } from "../keys/internal-token.ts";
import type { KeyEntry } from "../keys/key-entry.ts";
import type { Keyring } from "../keys/keyring.ts";
import type { Connection } from "./connection.ts";
import { type EndpointDeps, storedDeps } from "./endpoints.ts";
import { errorResponse } from "./error-body.ts";
import { INFERENCE } from "./inference.ts";
import { createServeAs } from "./serve/serve.ts";
import { addStoredRoutes } from "./stored-routes.ts";
import { createUnmetered } from "./unmetered-answer.ts";

interface InternalDeps extends Pick<EndpointDeps, "serve" | "files" | "batches"> {
	readonly keyring: Pick<Keyring, "load">;
}

/**
 * Serves the console: requests of the public interface in the name of a key, which a signed token names instead of its
 * secret. They take the public interface's whole road; a request without a valid token learns nothing.
 */
export function createInternalDoor(
	deps: InternalDeps,
	options: { secret: string },
): (connection: Connection) => Promise<Response> {
	const { serve, keyring } = deps;
	const serveAs = createServeAs(serve, keyring);
	const stored = createStored(deps, options);
	return async (asked) => {
		const { request, address } = asked;
		const language = languageOf(request.headers);
		const connection = {
			request,
			address,
			language,
			setIdleTimeout: (seconds: number) => asked.setIdleTimeout(seconds),
		};
		const { pathname } = new URL(request.url);
		if (STORED.test(pathname)) return stored(connection);
		const endpoint = request.method === "POST" ? ENDPOINTS.get(pathname) : undefined;
		if (endpoint === undefined) return refused(new Fault("not_found", "There is no such endpoint."));
		const token = request.headers.get("authorization")?.replace(/^Bearer /, "") ?? "";
		const keyDigest = readInternalToken(options.secret, token, pathname, serve.clock.wallMs());
		if (keyDigest === undefined) return refused(new Fault("forbidden", "The token is not valid."));
		return serveAs(endpoint, keyDigest, connection);
	};
}

const STORED = /^\/v1\/(files|batches)(\/|$)/;

/** Files and batches, each request by the key in its token. */
function createStored(
	deps: InternalDeps,
	{ secret }: { secret: string },
): (connection: Connection) => Promise<Response> {
	const { serve, keyring } = deps;
	const connections = new WeakMap<Request, Connection>();
	function connectionOf(request: Request): Connection {
		const connection = connections.get(request);
		assert(connection !== undefined, "a request comes with its connection");
		return connection;
	}
	/** The token must be valid when the request begins; the request itself may take hours. */
	const named = new WeakMap<Connection, KeyDigest>();
	function digestOf(connection: Connection): KeyDigest {
		const { headers, url } = connection.request;
		const token = headers.get("authorization")?.replace(/^Bearer /, "") ?? "";
		const found =
			named.get(connection) ?? readInternalToken(secret, token, new URL(url).pathname, serve.clock.wallMs());
		if (found === undefined) throw new Fault("forbidden", "The token is not valid.");
		named.set(connection, found);
		return found;
	}
	async function authenticate(connection: Connection): Promise<KeyEntry> {
		const keyDigest = digestOf(connection);
		const entry = await keyring.load(keyDigest);
		if (entry === null) throw invalidApiKey();
		checkKey(entry, serve.clock.wallMs());
		return entry;
	}
	const app = new Elysia({ handler: { standardHostname: false } });
	const wrongMethod = () => refused(new Fault("method_not_allowed", "There is no such endpoint."));
	addStoredRoutes(app, storedDeps({ ...deps, connectionOf }), {
		unmetered: createUnmetered({ ...serve, authenticate, connectionOf }),
		wrongMethod,
	});
	app.all("/*", () => refused(new Fault("not_found", "There is no such endpoint.")), { parse: "none" });
	return async (connection) => {
		connections.set(connection.request, connection);
		return app.fetch(connection.request);
	};
}

/** A Map, so that inherited members of an object are no paths. */
const ENDPOINTS: ReadonlyMap<string, (typeof INFERENCE)[keyof typeof INFERENCE]> = new Map(Object.entries(INFERENCE));

function refused(fault: Fault): Response {
	return errorResponse(fault, newRequestId().requestId);
}

/** Whether a request carries an internal token. Secrets of API keys begin differently. */
export function isInternal(request: Request): boolean {
	return request.headers.get("authorization")?.startsWith("Bearer tgi_") ?? false;
}
