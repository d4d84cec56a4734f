import type { Route } from "../../catalog/model.ts";
import type { OutputChunk } from "../../upstream/call/stream-wire.ts";
import type { BodyHold } from "../body/body-memory.ts";
import type { Connection } from "../connection.ts";
import { setRateHeaders } from "../headers.ts";
import { modelNameOf } from "../request-fields.ts";
import { attempt } from "./attempt.ts";
import type { Authenticate } from "./authenticate.ts";
import { createContext, type RequestContext, type ServeDeps } from "./context.ts";
import type { EndpointInput, InferenceEndpoint, RequestBody } from "./endpoint.ts";
import { assertServed, modelFor } from "./model-for.ts";
import { refuse } from "./refuse.ts";
import { serveRoute } from "./serve-route.ts";

/**
 * The one road of all endpoints, from the header to the last byte:
 * authenticate → read → admit (one synchronous block) → send → relay → settle → refuse. Postgres is not asked on the
 * way. Nothing of it needs a socket: with `authenticate` for a key that is known already and a Request that somebody made,
 * it serves whoever asks from within. Such a caller reads the answer's body to its end, cancels it or aborts the
 * Request's signal, so that a stream is settled. Never rejects.
 */
export async function serve<Body extends RequestBody, Input extends EndpointInput, Reply, Chunk extends OutputChunk>(
	deps: ServeDeps,
	endpoint: InferenceEndpoint<Body, Input, Reply, Chunk>,
	connection: Connection,
	authenticate?: Authenticate,
): Promise<Response> {
	const { clock, catalog } = deps;
	const context = createContext(endpoint.name, connection, clock, deps.traces);
	let response: Response;
	let held: BodyHold | undefined;
	try {
		const known = (authenticate ?? deps.authenticate)(connection);
		const key = known instanceof Promise ? await known : known;
		context.key = key;

		assertServed(catalog.current(), endpoint);
		// What needs no body is found out before one is read.
		const { line } = connection;
		deps.admission.check(key, line !== undefined);
		if (line === undefined) deps.unreadAnswers.check(key.accountId);
		held = deps.bodyMemory.hold(key.accountId);
		const body = await endpoint.readBody(connection, deps.limits().bodyBytesMax, deps.bodyReads, held);
		context.modelName = modelNameOf(body.value);
		// A line of a batch names one model, which was found when its batch was checked.
		const route = line === undefined ? catalog.current().routes.get(context.modelName) : undefined;
		response = await (route === undefined
			? attempt(deps, endpoint, context, body, modelFor(catalog.current(), context.modelName, endpoint))
			: attemptInTurn(deps, endpoint, context, body, route));
	} catch (error) {
		response = refuse(deps, context, { error, promptField: endpoint.promptField, admitted: context.isAdmitted });
	} finally {
		held?.release();
	}
	context.trace?.answered(response.status);
	const standing = context.key === undefined ? null : deps.admission.rateStanding(context.key);
	if (standing !== null) setRateHeaders(response.headers, standing);
	return response;
}

/** A function of its own, so that a request without a route keeps nothing for a closure. */
function attemptInTurn<Body extends RequestBody, Input extends EndpointInput, Reply, Chunk extends OutputChunk>(
	deps: ServeDeps,
	endpoint: InferenceEndpoint<Body, Input, Reply, Chunk>,
	context: RequestContext,
	body: Body,
	route: Route,
): Promise<Response> {
	return serveRoute(deps, endpoint, context, route, (again, model) => attempt(deps, endpoint, again, body, model));
}
