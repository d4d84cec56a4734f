import { Elysia } from "elysia";
import { Fault } from "../base/fault.ts";
import { newRequestId } from "../base/id.ts";
import type { KeyEntry } from "../keys/key-entry.ts";
import { createEndpoints, type EndpointDeps } from "./endpoints.ts";
import { errorResponse, faultOf } from "./error-body.ts";
import { findModelEntry, listModels } from "./lookups/models.ts";
import { notOfferedText } from "./not-offered.ts";
import { createUnmetered } from "./unmetered-answer.ts";

/** The inference interface. Routes get the bare Request and return a whole Response: no hook touches either. */
export function createGateway(deps: EndpointDeps) {
	const { serve, connectionOf } = deps;
	const unmetered = createUnmetered({ ...serve, connectionOf });
	const connected = (key: KeyEntry) => (modelId: string) => serve.upstreams.connected(modelId, key.accountId);
	const models = unmetered((_request, key) => listModels(serve.catalog.current(), connected(key)), "reads");
	const model = unmetered(
		(request, key) => findModelEntry(serve.catalog.current(), modelIdOf(request.url), connected(key)),
		"reads",
	);

	return new Elysia({ name: "gateway", handler: { standardHostname: false } })
		.use(createEndpoints(deps, { unmetered, wrongMethod }))
		.get("/v1/models", ({ request }) => models(request))
		.get("/v1/models/*", ({ request }) => model(request))
		.all("/v1/models", () => wrongMethod("GET"), { parse: "none" })
		.all("/v1/models/*", () => wrongMethod("GET"), { parse: "none" })
		.all("/v1/*", ({ request }) => notFound(request), { parse: "none" });
}

/** The rest of the path, still encoded: a router would stop at an encoded slash or decode it. */
function modelIdOf(url: string): string {
	const path = new URL(url).pathname;
	return path.slice("/v1/models/".length);
}

function wrongMethod(allowed: string): Response {
	const response = errorResponse(
		new Fault("method_not_allowed", `Use ${allowed} for this endpoint.`),
		newRequestId().requestId,
	);
	response.headers.set("allow", allowed);
	return response;
}

export function notFound(request: Request): Response {
	const { pathname } = new URL(request.url);
	return errorResponse(new Fault("not_found", notOfferedText(pathname)), newRequestId().requestId);
}

/** For the outermost `onError`: an escaped error is answered in the error shape, without its text. */
export function escapedError(error: unknown, code: string | number): Response {
	const { requestId } = newRequestId();
	if (code === "NOT_FOUND") return errorResponse(new Fault("not_found", "There is no such page."), requestId);
	if (code === "PARSE" || code === "VALIDATION")
		return errorResponse(new Fault("invalid_request", "The request is malformed."), requestId);
	return errorResponse(faultOf(error), requestId);
}
