import type { Endpoint } from "../../catalog/request-fields.ts";
import type { OutputChunk } from "../../upstream/call/stream-wire.ts";
import type { Connection } from "../connection.ts";
import type { Authenticate } from "./authenticate.ts";
import type { ServeDeps } from "./context.ts";
import type { EndpointInput, InferenceEndpoint, RequestBody } from "./endpoint.ts";
import { serve } from "./serve.ts";

/** An endpoint, bound to `serve`. */
export interface ServedEndpoint {
	/** Its name in usage records and refusals. */
	readonly name: Endpoint;
	/** See `serve`. */
	answer(deps: ServeDeps, connection: Connection, authenticate?: Authenticate): Promise<Response>;
}

export function served<Body extends RequestBody, Input extends EndpointInput, Reply, Chunk extends OutputChunk>(
	endpoint: InferenceEndpoint<Body, Input, Reply, Chunk>,
): ServedEndpoint {
	return {
		name: endpoint.name,
		answer: (deps, connection, authenticate) => serve(deps, endpoint, connection, authenticate),
	};
}
