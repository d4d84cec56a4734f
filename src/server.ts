import type { Server } from "bun";
import { Elysia } from "elysia";
import type { Config } from "./config.ts";
import type { Console } from "./console/console.ts";
import type { Pages } from "./console/pages.ts";
import { createClientAddress } from "./gateway/client-address.ts";
import type { Connection } from "./gateway/connection.ts";
import { IDLE_TIMEOUT_S } from "./gateway/connection.ts";
import type { EndpointDeps } from "./gateway/endpoints.ts";
import { createGateway, escapedError, notFound } from "./gateway/routes.ts";
import type { HealthReport } from "./ops/health.ts";
import { healthResponse } from "./ops/health.ts";
import type { Metrics } from "./ops/metrics.ts";

export interface ServerDeps extends Omit<EndpointDeps, "connectionOf"> {
	health(): HealthReport;
	metrics: Metrics;
	console: Pick<Console, "handle">;
	pages: Pages;
	/** True once every answer is to be the last one of its connection. */
	endsConnections(): boolean;
}

/** Bun answers a larger body with an empty 413; ours comes first and has our shape. */
const BODY_MARGIN_BYTES = 64 * 1024 * 1024;

/**
 * Everything that is served, on one port. Bun.serve is called here and not by Elysia: its defaults share the port with
 * other processes and time out by another clock.
 */
export function startServer(config: Config, deps: ServerDeps): Server<undefined> {
	const clientAddress = createClientAddress(config.trustedProxies);
	const connectionOf = (request: Request): Connection => ({
		request,
		get address() {
			return clientAddress(server.requestIP(request)?.address ?? "", request.headers.get("x-forwarded-for"));
		},
		setIdleTimeout: (seconds) => server.timeout(request, seconds),
	});
	const http = new Elysia({ handler: { standardHostname: false } })
		.onError(({ error, code }) => escapedError(error, code))
		.get("/livez", () => new Response("ok\n"))
		.get("/readyz", () => healthResponse(deps.health()))
		.get("/metrics", ({ request }) => metricsResponse(request, config.metricsToken, deps.metrics))
		.use(createGateway({ ...deps, connectionOf }))
		.all("/api/*", ({ request }) => deps.console.handle(connectionOf(request)), { parse: "none" })
		.all("/*", async ({ request }) => (await deps.pages.respond(request)) ?? notFound(request), { parse: "none" });
	const server: Server<undefined> = Bun.serve({
		hostname: config.host,
		port: config.port,
		reusePort: config.workers > 1,
		idleTimeout: IDLE_TIMEOUT_S,
		maxRequestBodySize: deps.limits().bodyBytesMax + BODY_MARGIN_BYTES,
		fetch: (request) => (deps.endsConnections() ? lastAnswer(http.fetch(request)) : http.fetch(request)),
		error: (error) => escapedError(error, "UNKNOWN"),
	});
	return server;
}

async function lastAnswer(answer: Response | Promise<Response>): Promise<Response> {
	const response = await answer;
	response.headers.set("connection", "close");
	return response;
}

/** Open to anyone who reaches the port unless a token is configured. */
async function metricsResponse(request: Request, token: string | null, metrics: Metrics): Promise<Response> {
	if (token !== null && request.headers.get("authorization") !== `Bearer ${token}`) return notFound(request);
	return new Response(await metrics.text(), {
		headers: { "content-type": metrics.contentType, "cache-control": "no-store" },
	});
}
