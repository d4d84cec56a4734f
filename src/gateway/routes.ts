import { Elysia } from "elysia";
import { Fault } from "../base/fault.ts";
import { newRequestId } from "../base/id.ts";
import type { Batches } from "../batch/batches.ts";
import { visibleCatalog } from "../catalog/visibility.ts";
import type { Statements } from "../db/statements.ts";
import type { Files } from "../files/files.ts";
import { addressNetwork } from "../keys/failed-attempts.ts";
import type { KeyEntry } from "../keys/key-entry.ts";
import type { Status } from "../status/status.ts";
import { createBatchAnswers } from "./batches/batch-answers.ts";
import { type Connection, unpaidTurn } from "./connection.ts";
import { errorResponse, toFault } from "./error-body.ts";
import { createFileAnswers } from "./files/file-answers.ts";
import { INFERENCE_ENDPOINTS } from "./inference.ts";
import { findModelEntry, listModels } from "./lookups/models.ts";
import { creditsAnswer, keyAnswer, usageAnswer } from "./lookups/usage-lookup.ts";
import { createUsageSums } from "./lookups/usage-sums.ts";
import { type DescribeFailures, type DocumentPart, openapiDocument } from "./openapi/openapi.ts";
import type { ServeDeps } from "./serve/context.ts";
import { createUnmeteredEndpoint } from "./unmetered-answer.ts";

export interface EndpointDeps {
	readonly serve: ServeDeps;
	readonly statements: Statements;
	readonly status: Pick<Status, "respond">;
	readonly files: Files;
	readonly batches: Batches;
	/** Part of `/openapi.json` for routes of other rooms. */
	readonly documentPart: (failures: DescribeFailures) => DocumentPart;
	connectionOf(request: Request): Connection;
}

type Routes = Readonly<
	Record<string, Partial<Record<"GET" | "POST" | "DELETE", (request: Request) => Response | Promise<Response>>>>
>;

/** Processor time assumed for sending `/openapi.json`. */
const DOCUMENT_MS = 2;

const BARE = { parse: "none" } as const;

/** Handlers get the bare Request and return a complete Response, which no Elysia hook changes. Adds 405 answers. */
export function addRoutes(app: Elysia, open: ReturnType<typeof createOpenEndpoint>, routes: Routes): void {
	for (const [path, methods] of Object.entries(routes)) {
		for (const [method, answer] of Object.entries(methods))
			app.route(method, path, ({ request }) => answer(request), BARE);
		const refuse = open(() => wrongMethod(Object.keys(methods).join(", ")));
		app.all(path, refuse, BARE);
	}
}

/** Endpoints that need no key. Networks take turns. `ms`: processor time of an answer, if it takes much. */
export function createOpenEndpoint(connectionOf: (request: Request) => Connection) {
	return (answer: (request: Request) => Response, ms?: number) =>
		async ({ request }: { request: Request }): Promise<Response> => {
			await unpaidTurn(addressNetwork(connectionOf(request).address), request, ms);
			return answer(request);
		};
}

export function createGateway(deps: EndpointDeps) {
	const { serve, statements, connectionOf } = deps;
	const { catalog, clock } = serve;
	const unmetered = createUnmeteredEndpoint({ ...serve, connectionOf });
	const connected = (key: KeyEntry) => (modelId: string) => serve.upstreams.connected(modelId, key.accountId);
	const visible = (key: KeyEntry) => visibleCatalog(catalog.current(), key.account, clock.wallMs());
	const usageSums = createUsageSums({ statements, clock });
	const document = JSON.stringify(openapiDocument(deps.documentPart));
	const documentHeaders = { "content-type": "application/json", "x-content-type-options": "nosniff" };
	const app = new Elysia({ name: "gateway", handler: { standardHostname: false } });
	const open = createOpenEndpoint(connectionOf);
	addRoutes(app, open, createApiRoutes(deps, serve.authenticate));
	addRoutes(app, open, {
		"/v1/key": { GET: unmetered(({ key }) => keyAnswer(statements, clock, key), "reads") },
		"/v1/credits": { GET: unmetered(({ key }) => creditsAnswer(statements, key.accountId), "reads") },
		"/v1/usage": { GET: unmetered(usageSums, "reads") },
		"/v1/usage/:id": {
			GET: unmetered(({ key, url }) => usageAnswer({ statements, clock }, key.accountId, lastPart(url)), "reads"),
		},
		"/v1/models": { GET: unmetered(({ key }) => listModels(visible(key), key, connected(key)), "reads") },
		"/v1/models/*": {
			GET: unmetered(({ key, url }) => findModelEntry(visible(key), modelIdOf(url), key, connected(key)), "reads"),
		},
	});
	const openapi = () =>
		new Response(document, { headers: { ...documentHeaders, "x-request-id": newRequestId().requestId } });
	return app
		.get("/status", open(deps.status.respond))
		.get("/openapi.json", open(openapi, DOCUMENT_MS))
		.all("/v1/*", open(notFoundResponse), BARE);
}

export function createApiRoutes(
	{ serve, files, batches, connectionOf }: Pick<EndpointDeps, "serve" | "files" | "batches" | "connectionOf">,
	authenticate: ServeDeps["authenticate"],
): Routes {
	const { catalog, clock, clients } = serve;
	const { bodyReads } = clients;
	const unmetered = createUnmeteredEndpoint({ ...serve, authenticate, connectionOf });
	const fileAnswers = createFileAnswers({ files, catalog, clock, bodyReads });
	const batchAnswers = createBatchAnswers({ batches, bodyReads });
	const inference = Object.entries(INFERENCE_ENDPOINTS).map(([path, endpoint]) => {
		const answer = (request: Request) => endpoint.answer(serve, connectionOf(request), authenticate);
		return [path, { POST: answer }];
	});
	return {
		...Object.fromEntries(inference),
		"/v1/files": { GET: unmetered(fileAnswers.list), POST: unmetered(fileAnswers.upload) },
		"/v1/files/:id": { GET: unmetered(fileAnswers.retrieve), DELETE: unmetered(fileAnswers.remove) },
		"/v1/files/:id/content": { GET: unmetered(fileAnswers.content) },
		"/v1/batches": { GET: unmetered(batchAnswers.list), POST: unmetered(batchAnswers.create) },
		"/v1/batches/:id": { GET: unmetered(batchAnswers.retrieve) },
		"/v1/batches/:id/cancel": { POST: unmetered(batchAnswers.cancel) },
	};
}

function lastPart(url: string): string {
	try {
		return decodeURIComponent(new URL(url).pathname.split("/").at(-1) ?? "");
	} catch {
		return "";
	}
}

/** The path after `/v1/models/`, still encoded: Elysia's router would decode it or stop at an encoded slash. */
const modelIdOf = (url: string): string => new URL(url).pathname.slice("/v1/models/".length);

function wrongMethod(allowed: string): Response {
	const response = errorResponse(
		new Fault("method_not_allowed", `Use ${allowed} for this endpoint.`),
		newRequestId().requestId,
	);
	response.headers.set("allow", allowed);
	return response;
}

export function notFoundResponse(request: Request): Response {
	const { pathname } = new URL(request.url);
	return errorResponse(new Fault("not_found", notOfferedText(pathname)), newRequestId().requestId);
}

/** For Elysia's outermost `onError`: such an error may be a bug, so the response does not contain its text. */
export function uncaughtErrorResponse(error: unknown, code: string | number): Response {
	const { requestId } = newRequestId();
	if (code === "NOT_FOUND") return errorResponse(new Fault("not_found", "Page not found."), requestId);
	if (code === "PARSE" || code === "VALIDATION")
		return errorResponse(
			new Fault("invalid_request", "The request is malformed. Compare it with /openapi.json."),
			requestId,
		);
	return errorResponse(toFault(error), requestId);
}

/** Paths of other services' interfaces, and what to use instead. The first match is used. */
const INSTEAD: readonly [RegExp, string][] = [
	[/\/\//, "Unknown endpoint: the path has `//`. The client's base URL ends with /v1, without a slash after it."],
	[
		/^\/(?!v1\/)|^\/v1\/v1\//,
		"Unknown endpoint. The client's base URL ends with /v1, once, so that it calls /v1/chat/completions.",
	],
	[/^\/v1\/responses\b/, "The Responses API is not supported. Use POST /v1/chat/completions with `messages`."],
	[/^\/v1\/(assistants|threads)\b/, "The Assistants API is not supported. Use POST /v1/chat/completions."],
	[
		/^\/v1\/(messages|complete)\b/,
		"The Messages API is not supported. Use an OpenAI-compatible client with POST /v1/chat/completions: the system prompt becomes the first message, `max_tokens` stays, a tool's `input_schema` becomes `function.parameters`.",
	],
	[/^\/v1\/chat\/completions\/./, "Chat completions are not stored. GET /v1/usage/{id} returns their cost."],
	[/^\/v1\/images\/(edits|variations)\b/, "Image edits are not supported. Use POST /v1/images/generations."],
	[/^\/v1\/audio\/translations\b/, "Audio translation is not supported. Use POST /v1/audio/transcriptions."],
	[/^\/v1\/audio\/speech\b/, "Speech synthesis is not supported. For audio there is POST /v1/audio/transcriptions."],
	[/^\/v1\/moderations\b/, "Moderation is not supported. Use a model with POST /v1/chat/completions."],
	[/^\/v1\/vector_stores\b/, "Vector stores are not supported. Use POST /v1/embeddings and POST /v1/rerank."],
	[/^\/v1\/(fine_tuning|fine-tunes)\b/, "Fine-tuning is not supported. GET /v1/models lists the available models."],
	[/^\/v1\/realtime\b/, "The Realtime API is not supported. Use POST /v1/chat/completions with `stream`."],
	[/^\/v1\/(videos|video)\b/, "Video is not supported. GET /v1/models lists the available models."],
	[
		/^\/v1\/(containers|evals|uploads|conversations)\b/,
		"This API is not supported. Available: POST /v1/chat/completions, /v1/completions, /v1/embeddings, /v1/audio/transcriptions, /v1/images/generations and /v1/rerank.",
	],
	[
		/^\/v1\/(organization|dashboard)\b/,
		"This API is not supported. GET /v1/credits returns the balance of the account.",
	],
	[/^\/v1\/engines\b/, "Engines are not supported. Set the body's `model` to one of GET /v1/models."],
];

export function notOfferedText(pathname: string): string {
	return INSTEAD.find(([pattern]) => pattern.test(pathname))?.[1] ?? "Unknown endpoint.";
}
