import { CreditFault } from "../../admission/credit-fault.ts";
import { assert } from "../../base/assert.ts";
import { Fault, type FaultCode } from "../../base/fault.ts";
import type { Model, Route } from "../../catalog/model.ts";
import { byPrice } from "../../catalog/rate-cards.ts";
import { isVisible } from "../../catalog/visibility.ts";
import { KeyFault } from "../../keys/access.ts";
import type { KeyEntry } from "../../keys/key-entry.ts";
import type { Refusal } from "../../ops/refusals.ts";
import { errorResponse, faultStatus, isRetryUseless, toFault } from "../error-body.ts";
import { SERVED_MODEL_HEADER } from "../headers.ts";
import { nextContext, type RequestContext, requestLogFields, type ServeDeps } from "./context.ts";
import { assertServesEndpoint, type EndpointRequirement, servesEndpoint } from "./model-for.ts";

/** Error codes after which the route's next model is tried. */
const MOVES_ON: ReadonlySet<FaultCode> = new Set([
	"model_not_allowed",
	"unsupported_parameter",
	"context_length_exceeded",
	"insufficient_quota",
	"key_cap_exceeded",
	"project_cap_exceeded",
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
 * Sends a request to its route's models in order until one answers. Each attempt is admitted at its model's rates; a
 * failed attempt costs nothing. If all fail, returns the first temporary failure; if there is none, the first failure.
 */
export async function serveRoute(
	deps: ServeDeps,
	endpoint: EndpointRequirement & { readonly promptField: string },
	first: RequestContext,
	route: Route,
	attempt: (context: RequestContext, model: Model) => Promise<Response>,
): Promise<Response> {
	let failure: Failure | undefined;
	let context = first;
	for (const model of inOrder(deps, route, endpoint, first)) {
		if (failure !== undefined) context = nextContext(context, deps.clock);
		try {
			const response = await attempt(context, model);
			response.headers.set(SERVED_MODEL_HEADER, model.id);
			return response;
		} catch (error) {
			const { code } = toFault(error);
			if (failure === undefined || (!mayPass(failure.error) && mayPass(error))) failure = { context, error };
			if (!MOVES_ON.has(code) || context.connection.request.signal.aborted) {
				failure = { context, error };
				break;
			}
			deps.telemetry.log.info("a model of a route did not answer", {
				...requestLogFields(context),
				route: route.id,
				model: model.id,
				code,
			});
		}
	}
	assert(failure !== undefined, "a route has models");
	const { error, context: failed } = failure;
	return refuseRequest(deps, failed, error, endpoint.promptField);
}

/** Puts models without a connected server last, because trying them first would delay the answer. */
function inOrder(
	deps: ServeDeps,
	route: Route,
	endpoint: EndpointRequirement,
	{ key }: RequestContext,
): readonly Model[] {
	const visible = route.models.filter((model) => isVisible(model, key?.account ?? null));
	const models = visible.filter((model) => servesEndpoint(endpoint, model));
	if (models.length === 0) assertServesEndpoint(endpoint, visible[0] ?? route.models[0]);
	const ordered = route.by === "speed" ? deps.catalog.fastestFirst(models) : models;
	const prices = key?.account.prices;
	if (route.by === "price" && prices !== undefined) {
		const nowMs = deps.clock.wallMs();
		// `models` is a copy; the route's own order is by list price.
		models.sort((a, b) => byPrice(prices.of(a, nowMs), prices.of(b, nowMs)));
	}
	const connected = (model: Model) => deps.upstreams.connected(model.id, key?.accountId);
	return [...ordered.filter(connected), ...ordered.filter((model) => !connected(model))];
}

function mayPass(error: unknown): boolean {
	const fault = toFault(error);
	return faultStatus(fault) >= 500 && !isRetryUseless(fault);
}

/** Returns the error response, counts the refusal and records it for the key's owner. */
export function refuseRequest(
	deps: Pick<ServeDeps, "telemetry" | "clock">,
	context: RequestContext,
	error: unknown,
	promptField: string,
): Response {
	const fault = withPromptField(toFault(error), promptField);
	const { requestId } = context;
	const { log, stats, refusals } = deps.telemetry;
	stats.refuse(fault.code);
	const key = context.key ?? (fault instanceof KeyFault ? fault.key : undefined);
	if (fault.code === "internal_error") log.error("a request failed", { ...requestLogFields(context, key), error });
	else if (fault.private !== undefined)
		log.info("a request was refused", { ...requestLogFields(context, key), code: fault.code, detail: fault.private });
	// A batch line's error is written to the batch's error file, not to the refusals.
	const answer = errorResponse(fault, requestId, context.connection.language);
	if (context.connection.line !== undefined) return answer;
	// An admitted request already has a usage record.
	if (!context.isAdmitted && key !== undefined) refusals.record(recordOf(context, key, fault, deps.clock.wallMs()));
	return answer;
}

/** If a server reports that the prompt is too long, the error names the endpoint's own prompt field. */
function withPromptField(fault: Fault, param: string): Fault {
	if (fault.code !== "context_length_exceeded" || fault.param === param) return fault;
	const { code, texts, cause } = fault;
	return new Fault(code, texts, { param, cause, ...(fault.private === undefined ? {} : { private: fault.private }) });
}

const recordOf = (context: RequestContext, key: KeyEntry, fault: Fault, atMs: number): Refusal => ({
	requestId: context.uuid,
	accountId: key.accountId,
	keyId: key.id,
	projectId: key.project?.id ?? null,
	model: context.modelName ?? null,
	endpoint: context.endpoint,
	code: fault.code,
	status: faultStatus(fault),
	message: fault.message,
	param: fault.param,
	shortage: fault instanceof CreditFault ? fault.shortage : null,
	atMs,
});
