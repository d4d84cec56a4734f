import type { Server } from "bun";
import type { Log } from "../base/log.ts";
import type { Config } from "../config.ts";
import { createClientAddress, createUrlCheck, type Probes, warnOfUnknownProxy } from "../gateway/client-address.ts";
import { type Connection, IDLE_TIMEOUT_S } from "../gateway/connection.ts";
import { escapedError } from "../gateway/routes.ts";
import { healthResponse } from "../ops/health.ts";
import type { Metrics } from "../ops/metrics.ts";
import type { ConsolePlane } from "./console-plane.ts";
import { lastAnswer } from "./drain-listener.ts";
import { isMetricsRequest, type MetricsAccess, mayReadMetrics, metricsResponse } from "./process-metrics.ts";
import { serveAt } from "./run-dir.ts";

/** Covers the largest playground chat; routes check their own smaller limits first. */
const BODY_BYTES_MAX = 40 * 1024 * 1024;

/**
 * The console's server. It listens at the socket to which gateways proxy, and trusts their `x-forwarded-for`. A console
 * that runs apart listens on its own port.
 */
export function startConsoleServer(
	config: MetricsAccess & Pick<Config, "host" | "port" | "trustedProxies">,
	deps: {
		plane: Pick<ConsolePlane, "handle" | "health">;
		log: Log;
		socket: string | undefined;
		/** Served to gateways; also to others if the console runs apart. */
		metrics: Metrics;
		/** True if every answer must close its connection. */
		endsConnections(): boolean;
	},
): Server<undefined> {
	const { plane, socket } = deps;
	const clientAddress = createClientAddress(config.trustedProxies, warnOfUnknownProxy(deps.log));
	const connectionOf = (request: Request): Connection => ({
		request,
		get address() {
			const forwardedFor = request.headers.get("x-forwarded-for");
			if (socket !== undefined) return forwardedFor ?? "";
			return clientAddress(server.requestIP(request)?.address ?? "", forwardedFor);
		},
		setIdleTimeout(seconds) {
			if (socket === undefined) server.timeout(request, seconds);
		},
	});
	const probes: Probes = {
		"/livez": () => new Response("ok\n"),
		"/readyz": async () => healthResponse(await plane.health()),
	};
	const checkUrl = createUrlCheck(probes);
	async function answer(request: Request): Promise<Response> {
		const unclear = checkUrl(request);
		if (unclear !== undefined) return unclear;
		const { pathname } = new URL(request.url);
		if (pathname === "/livez" || pathname === "/readyz") return probes[pathname]();
		if (socket !== undefined && isMetricsRequest(request)) return metricsResponse(deps.metrics);
		if (socket === undefined && pathname === "/metrics" && mayReadMetrics(config, connectionOf(request)))
			return metricsResponse(deps.metrics);
		return plane.handle(connectionOf(request));
	}
	const options = {
		maxRequestBodySize: BODY_BYTES_MAX,
		fetch: (request: Request) => (deps.endsConnections() ? lastAnswer(answer(request)) : answer(request)),
		error: (error: Error) => escapedError(error, "UNKNOWN"),
	};
	const server: Server<undefined> =
		socket === undefined
			? Bun.serve({
					...options,
					hostname: config.host,
					port: config.port,
					idleTimeout: IDLE_TIMEOUT_S,
					development: false,
				})
			: serveAt(socket, options);
	return server;
}
