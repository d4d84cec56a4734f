import { assert } from "../../base/assert.ts";
import type { FaultCode } from "../../base/fault.ts";
import type { Model, Route } from "../../catalog/model.ts";
import { faultOf, statusOf } from "../error-body.ts";
import { SERVED_MODEL_HEADER } from "../headers.ts";
import { contextAgain, logFields, type RequestContext, type ServeDeps } from "./context.ts";
import { assertMeets, type EndpointRequirement, meets } from "./model-for.ts";
import { refuse } from "./refuse.ts";

/** Failures after which another model of the route may succeed. */
const MOVES_ON: ReadonlySet<FaultCode> = new Set([
	"model_not_allowed",
	"unsupported_parameter",
	"context_length_exceeded",
	"insufficient_quota",
	"key_cap_exceeded",
	"project_cap_exceeded",
	"unprocessable_request",
	"overloaded",
	"service_unavailable",
	"upstream_error",
	"upstream_timeout",
]);

interface Failure {
	readonly context: RequestContext;
	readonly error: unknown;
}

/**
 * Sends a request to the models of its route in order until one delivers an answer. Each attempt is admitted separately
 * at its model's rates, and a failed one costs nothing. The body and a header name the model that answered. If all
 * fail, the client gets the first temporary failure, or else the first.
 */
export async function serveRoute(
	deps: ServeDeps,
	endpoint: EndpointRequirement & { readonly promptField: string },
	first: RequestContext,
	route: Route,
	attempt: (context: RequestContext, model: Model) => Promise<Response>,
): Promise<Response> {
	let told: Failure | undefined;
	let context = first;
	for (const model of inOrder(deps, route, endpoint, first)) {
		if (told !== undefined) context = contextAgain(context, deps.clock);
		try {
			const response = await attempt(context, model);
			response.headers.set(SERVED_MODEL_HEADER, model.id);
			return response;
		} catch (error) {
			const { code } = faultOf(error);
			if (told === undefined || (!mayPass(told.error) && mayPass(error))) told = { context, error };
			if (!MOVES_ON.has(code) || context.connection.request.signal.aborted) {
				told = { context, error };
				break;
			}
			deps.telemetry.log.info("a model of a route did not answer", {
				...logFields(context),
				route: route.id,
				model: model.id,
				code,
			});
		}
	}
	assert(told !== undefined, "a route has models");
	const { error, context: failed } = told;
	return refuse(deps, failed, { error, promptField: endpoint.promptField, admitted: failed.isAdmitted });
}

/** Models without a server come last, so that the others need not wait for their refusal. */
function inOrder(
	deps: ServeDeps,
	route: Route,
	endpoint: EndpointRequirement,
	{ key }: RequestContext,
): readonly Model[] {
	const models = route.models.filter((model) => meets(endpoint, model));
	if (models.length === 0) assertMeets(endpoint, route.models[0]);
	const ordered = route.by === "speed" ? deps.catalog.fastestFirst(models) : models;
	const connected = (model: Model) => deps.upstreams.connected(model.id, key?.accountId);
	return [...ordered.filter(connected), ...ordered.filter((model) => !connected(model))];
}

function mayPass(error: unknown): boolean {
	return statusOf(faultOf(error)) >= 500;
}
