import { mayStartRequest, waitForRequestTurn } from "../../base/time-slice.ts";
import type { Route } from "../../catalog/model.ts";
import { checkAccess } from "../../keys/access.ts";
import type { OutputChunk } from "../../upstream/call/stream-wire.ts";
import type { CountedReply } from "../../upstream/call/unary.ts";
import type { BodyHold } from "../body/body-memory.ts";
import { type Connection, isReadWhole, unpaidTurn, unreadBytes } from "../connection.ts";
import { CLIENT_LEFT_STATUS } from "../error-body.ts";
import { setRateHeaders } from "../headers.ts";
import { type ClaimedRequest, IDEMPOTENCY_HEADER } from "../idempotency/idempotency.ts";
import { readModelName } from "../request-fields.ts";
import { attemptModel } from "./attempt.ts";
import type { Authenticate } from "./authenticate.ts";
import { createContext, type RequestContext, type ServeDeps } from "./context.ts";
import type { EndpointInput, InferenceEndpoint, RequestBody } from "./endpoint.ts";
import { assertServed, findRoute, resolveModel } from "./model-for.ts";
import { refuseRequest, serveRoute } from "./serve-route.ts";

/**
 * Serves all endpoints. Steps: authenticate → read → claim (with an `Idempotency-Key`) → admit (one synchronous block)
 * → send → relay → settle, or refuse. Only a claim queries Postgres. A caller within the process passes its own
 * `authenticate` and must read or cancel the answer's body, or abort. Never rejects.
 */
export async function serveRequest<
	Body extends RequestBody,
	Input extends EndpointInput,
	Reply extends CountedReply,
	Chunk extends OutputChunk,
>(
	deps: ServeDeps,
	endpoint: InferenceEndpoint<Body, Input, Reply, Chunk>,
	connection: Connection,
	authenticate?: Authenticate,
): Promise<Response> {
	const { clock, catalog, idempotency } = deps;
	const header = idempotency === undefined ? null : connection.request.headers.get(IDEMPOTENCY_HEADER);
	const context = createContext(endpoint.name, connection, clock, deps.telemetry.traces, header !== null);
	let response: Response;
	let held: BodyHold | undefined;
	let claimed: ClaimedRequest | undefined;
	try {
		const known = (authenticate ?? deps.authenticate)(connection);
		const key = known instanceof Promise ? await deps.clients.bodyMemory.untilKnown(known, connection) : known;
		context.key = key;

		const { line, request } = connection;
		held = deps.clients.bodyMemory.hold(key.accountId);
		if (line === undefined && !mayStartRequest(key.accountId)) {
			held.take(0, unreadBytes(request));
			await waitForRequestTurn(key.accountId, request.signal);
			if (request.signal.aborted) return new Response(null, { status: CLIENT_LEFT_STATUS });
		}
		if (header === null) {
			// Checks that do not need the body, so that a refused request's body is not read.
			assertServed(catalog.current(), endpoint, key.account);
			deps.admission.check(key, line !== undefined);
		} else checkAccess(key, clock.wallMs());
		if (line === undefined) deps.clients.unreadAnswers.check(key.accountId);
		const step = header === null ? undefined : await idempotency?.claim(header, connection, key, context.uuid, held);
		if (step?.replay !== undefined) response = step.replay;
		else {
			if (step !== undefined) {
				claimed = step.claimed;
				assertServed(catalog.current(), endpoint, key.account);
				deps.admission.check(key, false);
			}
			const body = await endpoint.readBody(
				connection,
				deps.catalog.limits().bodyBytesMax,
				deps.clients.bodyReads,
				held,
				step?.bytes,
			);
			context.modelName = readModelName(body.value);
			// A batch line names one model, because its route was resolved when the batch was checked.
			const route = line === undefined ? findRoute(catalog.current(), context.modelName, key.account) : undefined;
			response = await (route === undefined
				? attemptModel(
						deps,
						endpoint,
						context,
						body,
						resolveModel(catalog.current(), context.modelName, endpoint, key.account),
					)
				: attemptInTurn(deps, endpoint, context, body, route));
		}
	} catch (error) {
		if (!context.isAdmitted) await waitToRefuse(context, held);
		if (connection.request.signal.aborted && context.key === undefined)
			return new Response(null, { status: CLIENT_LEFT_STATUS });
		response = refuseRequest(deps, context, error, endpoint.promptField);
	} finally {
		held?.release();
	}
	context.trace?.answered(response.status);
	if (context.key !== undefined) setRateHeaders(response, deps.admission, context.key, context.model);
	return claimed === undefined || idempotency === undefined ? response : idempotency.record(claimed, response);
}

/** Resolves in the turn in which the client may send its next request: at once if its connection ends. */
async function waitToRefuse({ connection, key }: RequestContext, held?: BodyHold): Promise<void> {
	const { request, line } = connection;
	if (unreadBytes(request) > 0 && !isReadWhole(request)) held?.release();
	else if (key !== undefined && line === undefined)
		await (held?.refused(request.signal) ?? unpaidTurn(key.accountId, request));
}

/** A separate function: a closure in `serveRequest` would keep its variables alive for every request. */
function attemptInTurn<
	Body extends RequestBody,
	Input extends EndpointInput,
	Reply extends CountedReply,
	Chunk extends OutputChunk,
>(
	deps: ServeDeps,
	endpoint: InferenceEndpoint<Body, Input, Reply, Chunk>,
	context: RequestContext,
	body: Body,
	route: Route,
): Promise<Response> {
	return serveRoute(deps, endpoint, context, route, (again, model) => attemptModel(deps, endpoint, again, body, model));
}

export type ServedEndpoint = ReturnType<typeof servedEndpoint>;

export function servedEndpoint<
	Body extends RequestBody,
	Input extends EndpointInput,
	Reply extends CountedReply,
	Chunk extends OutputChunk,
>(endpoint: InferenceEndpoint<Body, Input, Reply, Chunk>) {
	return {
		name: endpoint.name,
		answer: (deps: ServeDeps, connection: Connection, authenticate?: Authenticate) =>
			serveRequest(deps, endpoint, connection, authenticate),
	};
}
