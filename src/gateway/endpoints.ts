import { Elysia } from "elysia";
import { newRequestId } from "../admission/admission.ts";
import { Fault } from "../base/fault.ts";
import type { Statements } from "../db/statements.ts";
import type { KeyEntry } from "../keys/key-entry.ts";
import type { Status } from "../status/status.ts";
import type { ChatDeps } from "./chat/chat.ts";
import { chat } from "./chat/chat.ts";
import { completions } from "./completions/completions.ts";
import { embeddings } from "./embeddings/embeddings.ts";
import type { Connection } from "./exchange.ts";
import { idempotent } from "./idempotency/idempotency.ts";
import { createIdempotencyStore } from "./idempotency/idempotency-store.ts";
import { images } from "./images/images.ts";
import { creditsAnswer } from "./lookups/credits.ts";
import { keyAnswer } from "./lookups/key-lookup.ts";
import { usageAnswer } from "./lookups/usage-lookup.ts";
import { openapiDocument } from "./openapi/openapi.ts";
import { rerank } from "./rerank/rerank.ts";
import { transcriptions } from "./transcriptions/transcriptions.ts";

export interface EndpointDeps extends ChatDeps {
	readonly statements: Statements;
	readonly status: Pick<Status, "respond">;
	connectionOf(request: Request): Connection;
}

/** How the gateway wraps its routes. */
export interface RouteKinds {
	/** An endpoint that costs nothing, needs a key, and works without credit. */
	free(answer: (request: Request, key: KeyEntry) => unknown): (request: Request) => Promise<Response>;
	wrongMethod(allowed: string): Response;
}

const INFERENCE = {
	"/v1/chat/completions": chat,
	"/v1/completions": completions,
	"/v1/embeddings": embeddings,
	"/v1/audio/transcriptions": transcriptions,
	"/v1/images/generations": images,
	"/v1/rerank": rerank,
};

/** The endpoints that take POSTs for money, the look-ups beside them, and what describes the service. */
export function createEndpoints(deps: EndpointDeps, { free, wrongMethod }: RouteKinds) {
	const app = new Elysia({ name: "endpoints", handler: { standardHostname: false } });
	const bare = { parse: "none" } as const;
	const answers = createIdempotencyStore({ clock: deps.clock });

	for (const [path, handler] of Object.entries(INFERENCE)) {
		const serve = idempotent(deps, answers, handler);
		app.post(path, ({ request }) => serve(deps.connectionOf(request)), bare);
		app.all(path, () => wrongMethod("POST"), bare);
	}

	const lookUps = {
		"/v1/key": free((_, key) => keyAnswer(deps.statements, key)),
		"/v1/credits": free((_, key) => creditsAnswer(deps.statements, key.accountId)),
		"/v1/usage/:id": free((request, key) => usageAnswer(deps, key.accountId, lastPart(request.url))),
	};
	for (const [path, answer] of Object.entries(lookUps)) {
		app.get(path, ({ request }) => answer(request));
		app.all(path, () => wrongMethod("GET"), bare);
	}

	const unavailable = free(() => {
		throw new Fault("service_unavailable", "Managed batches and their files are not available.");
	});
	for (const path of ["/v1/files", "/v1/files/*", "/v1/batches", "/v1/batches/*"])
		app.all(path, ({ request }) => unavailable(request), bare);

	const document = JSON.stringify(openapiDocument());
	return app
		.get("/status", ({ request }) => deps.status.respond(request))
		.get("/openapi.json", () => {
			const headers = { "content-type": "application/json", "x-content-type-options": "nosniff" };
			return new Response(document, { headers: { ...headers, "x-request-id": newRequestId().requestId } });
		});
}

function lastPart(url: string): string {
	const part = new URL(url).pathname.split("/").at(-1) ?? "";
	try {
		return decodeURIComponent(part);
	} catch {
		// What is not even an address is no ID of ours.
		return "";
	}
}
