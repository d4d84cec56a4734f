import { Elysia } from "elysia";
import { newRequestId } from "../base/id.ts";
import type { Batches } from "../batch/batches.ts";
import type { Statements } from "../db/statements.ts";
import type { Files } from "../files/files.ts";
import type { Status } from "../status/status.ts";
import type { Connection } from "./connection.ts";
import { INFERENCE } from "./inference.ts";
import { creditsAnswer, keyAnswer } from "./lookups/key-lookup.ts";
import { usageAnswer } from "./lookups/usage-lookup.ts";
import { createUsageSums } from "./lookups/usage-sums.ts";
import { type DocumentPart, type Failures, openapiDocument } from "./openapi/openapi.ts";
import type { ServeDeps } from "./serve/context.ts";
import { addStoredRoutes, type StoredDeps } from "./stored-routes.ts";
import type { Unmetered } from "./unmetered-answer.ts";

export interface EndpointDeps {
	readonly serve: ServeDeps;
	readonly statements: Statements;
	readonly status: Pick<Status, "respond">;
	readonly files: Files;
	readonly batches: Batches;
	/** The part of `/openapi.json` that another room serves. */
	readonly documentPart: (failures: Failures) => DocumentPart;
	connectionOf(request: Request): Connection;
}

/** How the gateway wraps its routes. */
export interface RouteKinds {
	readonly unmetered: Unmetered;
	wrongMethod(allowed: string): Response;
}

/** Inference endpoints, lookups, files, batches and the OpenAPI document. */
export function createEndpoints(deps: EndpointDeps, { unmetered, wrongMethod }: RouteKinds) {
	const app = new Elysia({ name: "endpoints", handler: { standardHostname: false } });
	const { serve, statements } = deps;
	const { clock } = serve;
	const bare = { parse: "none" } as const;

	for (const [path, endpoint] of Object.entries(INFERENCE)) {
		app.post(path, ({ request }) => endpoint.answer(serve, deps.connectionOf(request)), bare);
		app.all(path, () => wrongMethod("POST"), bare);
	}

	const usageSums = createUsageSums({ statements, clock });
	const lookUps = {
		"/v1/key": unmetered((_, key) => keyAnswer(statements, clock, key), "reads"),
		"/v1/credits": unmetered((_, key) => creditsAnswer(statements, key.accountId), "reads"),
		"/v1/usage": unmetered((request, key, { requestId }) => usageSums(request, key.accountId, requestId), "reads"),
		"/v1/usage/:id": unmetered(
			(request, key) => usageAnswer({ statements, clock }, key.accountId, lastPart(request.url)),
			"reads",
		),
	};
	for (const [path, answer] of Object.entries(lookUps)) {
		app.get(path, ({ request }) => answer(request));
		app.all(path, () => wrongMethod("GET"), bare);
	}

	addStoredRoutes(app, storedDeps(deps), { unmetered, wrongMethod });

	const document = JSON.stringify(openapiDocument(deps.documentPart));
	return app
		.get("/status", ({ request }) => deps.status.respond(request))
		.get("/openapi.json", () => {
			const headers = { "content-type": "application/json", "x-content-type-options": "nosniff" };
			return new Response(document, { headers: { ...headers, "x-request-id": newRequestId().requestId } });
		});
}

/** Dependencies of files and batches. */
export function storedDeps({
	serve,
	files,
	batches,
	connectionOf,
}: Omit<EndpointDeps, "statements" | "status" | "documentPart">): StoredDeps {
	const { catalog, clock, clients } = serve;
	return { files, batches, catalog, clock, bodyReads: clients.bodyReads, connectionOf };
}

function lastPart(url: string): string {
	const part = new URL(url).pathname.split("/").at(-1) ?? "";
	try {
		return decodeURIComponent(part);
	} catch {
		// An id that cannot be decoded matches nothing.
		return "";
	}
}
