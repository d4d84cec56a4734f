import type { Server } from "bun";
import { Elysia } from "elysia";
import { createProcessorTurns } from "../base/processor-turns.ts";
import type { Cors } from "../catalog/cors.ts";
import type { Config } from "../config.ts";
import { createClientAddress, createUrlCheck, type Probes, warnOfUnknownProxy } from "../gateway/client-address.ts";
import { ANONYMOUS_TIMEOUT_S, type Connection, IDLE_TIMEOUT_S, unreadBytes } from "../gateway/connection.ts";
import { createCors } from "../gateway/cors.ts";
import { hasInternalToken } from "../gateway/internal-api.ts";
import type { EndpointDeps } from "../gateway/routes.ts";
import { createGateway, notFoundResponse, uncaughtErrorResponse } from "../gateway/routes.ts";
import { addressNetwork } from "../keys/failed-attempts.ts";
import { MANAGEMENT_PREFIX } from "../management/management-routes.ts";
import { type HealthReport, healthResponse } from "../ops/health.ts";
import type { Metrics } from "../ops/metrics.ts";
import type { ConsoleProxy } from "./console-proxy.ts";
import { withConnectionClose } from "./drain-listener.ts";
import { isMetricsRequest, type MetricsAccess, mayReadMetrics, metricsResponse } from "./process-metrics.ts";
import { listenAtSocket } from "./run-dir.ts";
import { createUnreadBodies } from "./unread-bodies.ts";

/** Address to listen at, and access to metrics. */
export type ServerConfig = MetricsAccess & Pick<Config, "host" | "port" | "runDir" | "trustedProxies">;

export interface ServerDeps {
	readonly endpoints: Omit<EndpointDeps, "connectionOf">;
	/** The origins whose pages may call `/v1/`. */
	cors(): Cors;
	health(): HealthReport;
	metrics: Metrics;
	console: ConsoleProxy;
	/** Handles requests that the console sends for a key. */
	internal: (connection: Connection) => Promise<Response>;
	/** True: accepts requests of the console on the public port too, because it runs on another machine. */
	internalOnPort: boolean;
	/** True while every response must close its connection. */
	endsConnections(): boolean;
}

/** Above the largest possible `body_mb`, so that the gateway answers 413 before Bun does, whose 413 has no body. */
const BODY_BYTES_CEILING = 1_088 * 1024 * 1024;

/** True if a program with a key requests a path of the console's pages, because its base URL lacks `/v1`. */
function missesPrefix({ headers, url }: Request): boolean {
	const isBearer = headers.get("authorization")?.slice(0, 7).toLowerCase() === "bearer ";
	return isBearer && !new URL(url).pathname.startsWith("/api/");
}

/** Serves all paths on one port. Calls Bun.serve directly, because Elysia shares the port and sets other timeouts. */
export function startGatewayServer(config: ServerConfig, deps: ServerDeps): Server<undefined> {
	const clientAddress = createClientAddress(
		config.trustedProxies,
		warnOfUnknownProxy(deps.endpoints.serve.telemetry.log),
	);
	/** A class, because it allocates less than closures and every request creates one. */
	class ClientConnection implements Connection {
		readonly request: Request;

		constructor(request: Request) {
			this.request = request;
		}

		get address(): string {
			const { request } = this;
			return clientAddress(server.requestIP(request)?.address ?? "", request.headers.get("x-forwarded-for"));
		}

		setIdleTimeout(seconds: number): void {
			const { request } = this;
			server.timeout(request, seconds === ANONYMOUS_TIMEOUT_S && isProxied(request) ? IDLE_TIMEOUT_S : seconds);
		}
	}
	/** True for a connection of a trusted proxy, which shares it among its clients and limits its connections itself. */
	function isProxied(request: Request): boolean {
		const forwardedFor = config.trustedProxies.length > 0 ? request.headers.get("x-forwarded-for") : null;
		if (forwardedFor === null) return false;
		const peer = server.requestIP(request)?.address ?? "";
		return clientAddress(peer, forwardedFor) !== clientAddress(peer, null);
	}
	const connectionOf = (request: Request): Connection => new ClientConnection(request);
	const proxy = deps.console;
	const passOn = ({ request }: { request: Request }) => proxy.handle(connectionOf(request));
	const probes: Probes = { "/livez": () => new Response("ok\n"), "/readyz": () => healthResponse(deps.health()) };
	const http = new Elysia({ handler: { standardHostname: false } })
		.onError(({ error, code }) => uncaughtErrorResponse(error, code))
		.get("/livez", probes["/livez"])
		.get("/readyz", probes["/readyz"])
		.get("/health", probes["/readyz"])
		.get("/metrics", ({ request }) =>
			mayReadMetrics(config, connectionOf(request)) ? metricsResponse(deps.metrics) : notFoundResponse(request),
		)
		.all(`${MANAGEMENT_PREFIX}*`, passOn, { parse: "none" })
		.use(createGateway({ ...deps.endpoints, connectionOf }))
		.all("/*", ({ request }) => (missesPrefix(request) ? notFoundResponse(request) : passOn({ request })), {
			parse: "none",
		});
	const checkUrl = createUrlCheck(probes);
	const answerClient = createCors((request) => http.fetch(request), deps.cors);
	const ended = createUnreadBodies(connectionOf);
	const answerNow = (request: Request) => {
		if (isProxied(request)) server.timeout(request, IDLE_TIMEOUT_S);
		return ended(
			request,
			checkUrl(request) ??
				(deps.internalOnPort && hasInternalToken(request)
					? deps.internal(connectionOf(request))
					: answerClient(request)),
		);
	};
	const turns = createProcessorTurns();

	/** The runtime closes the connection if a pipelined request follows while an answer waits for its turn. */
	function answerInTurn(request: Request): Response | Promise<Response> {
		const { signal } = request;
		const owner = addressNetwork(connectionOf(request).address);
		return turns.run(owner, () => (signal.aborted ? new Response() : answerNow(request)));
	}

	const answer = (request: Request) =>
		// Limits of the body memory apply to large bodies instead, because they fill memory while their request waits.
		turns.mayAnswer() || unreadBytes(request) > 0 ? answerNow(request) : answerInTurn(request);
	const server: Server<undefined> = Bun.serve({
		hostname: config.host,
		port: config.port,
		reusePort: config.runDir !== null,
		idleTimeout: ANONYMOUS_TIMEOUT_S,
		// In development mode the runtime prints errors of streams to the terminal instead of the log.
		development: false,
		maxRequestBodySize: BODY_BYTES_CEILING,
		fetch: (request) => (deps.endsConnections() ? withConnectionClose(answer(request)) : answer(request)),
		error: (error) => uncaughtErrorResponse(error, "UNKNOWN"),
	});
	return server;
}

/** Server for the console, on a Unix socket that only processes of this user can open. */
export function startInternalServer(
	path: string,
	deps: { internal: (connection: Connection) => Promise<Response>; metrics: Metrics },
): Server<undefined> {
	const connectionOf = (request: Request): Connection => ({
		request,
		address: request.headers.get("x-forwarded-for") ?? "",
		setIdleTimeout() {},
	});
	return listenAtSocket(path, {
		maxRequestBodySize: BODY_BYTES_CEILING,
		fetch: (request) =>
			isMetricsRequest(request) ? metricsResponse(deps.metrics) : deps.internal(connectionOf(request)),
		error: (error) => uncaughtErrorResponse(error, "UNKNOWN"),
	});
}
