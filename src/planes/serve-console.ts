import type { Server } from "bun";
import { systemClock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Config } from "../config.ts";
import { readOwnBrand } from "../console/brand/shown-brand.ts";
import { createGatewayClient, type GatewayAddress } from "../console/gateway-client.ts";
import { createClientAddress, createUrlCheck, type Probes, warnOfUnknownProxy } from "../gateway/client-address.ts";
import { type Connection, IDLE_TIMEOUT_S } from "../gateway/connection.ts";
import { uncaughtErrorResponse } from "../gateway/routes.ts";
import { healthResponse, STOPPING_REASON } from "../ops/health.ts";
import type { Metrics } from "../ops/metrics.ts";
import { loadOrCreateSecrets, newInternalSecret } from "../secrets.ts";

import { type ConsolePlane, createConsolePlane } from "./console-plane.ts";
import { drainListener, withConnectionClose } from "./drain-listener.ts";
import { listeningUrl } from "./listening-address.ts";
import { startOnDatabase } from "./open-database.ts";
import {
	createProcessMetrics,
	isMetricsRequest,
	type MetricsAccess,
	mayReadMetrics,
	metricsResponse,
	workerLabel,
} from "./process-metrics.ts";
import { consoleSocket, gatewaySockets, listenAtSocket } from "./run-dir.ts";
import { createUnreadBodies } from "./unread-bodies.ts";

/** Runs the console plane as this process. Rejects if `leaving` aborts while it opens the database. */
export async function serveConsole(config: Config, { log, leaving }: { log: Log; leaving?: AbortSignal }) {
	const { runDir } = config;
	const brand = await readOwnBrand(config);
	return startOnDatabase(config, { log, leaving }, async ({ cleanup, databaseUrl, end }) => {
		const plane = createConsolePlane(config, {
			log,
			brand,
			databaseUrl,
			secrets: loadOrCreateSecrets(config),
			gateways: createGatewayClient(
				{ clock: systemClock, log, places: () => placesOf(config) },
				{ secret: config.internalSecret ?? newInternalSecret() },
			),
			listeningAt: () => listeningUrl(config.host, runDir === null ? server.port : config.port),
		});
		cleanup.add(() => plane.stop());
		const metrics = createProcessMetrics({ cleanup }, plane.metrics, workerLabel(config));
		let drainEndMs: number | undefined;
		let gatewaysAre: "staying" | "leaving" | "gone" = "staying";
		const gatewaysGone = Promise.withResolvers<void>();
		const beginDrain = () => {
			drainEndMs ??= systemClock.monotonicMs() + config.drainMs;
			return drainEndMs;
		};
		const server = startConsoleServer(config, {
			plane: {
				...plane,
				async health() {
					const report = await plane.health();
					return drainEndMs === undefined
						? report
						: { ...report, ready: false, reasons: [STOPPING_REASON, ...report.reasons] };
				},
			},
			log,
			socket: runDir === null ? undefined : consoleSocket(runDir),
			metrics,
			endsConnections: () => drainEndMs !== undefined,
		});
		return {
			url: runDir === null ? listeningUrl(config.host, server.port) : undefined,
			reload: async () => {},
			sendAway({ successor }: { successor: boolean }) {
				// A successor already gets new requests. If there is none, the gateways send theirs here until they stop.
				if (!successor) beginDrain();
				return !successor;
			},
			hearOfGateways(are: "leaving" | "gone") {
				gatewaysAre = are;
				if (are === "gone") gatewaysGone.resolve();
			},
			async stop() {
				const drainOver = Bun.sleep(Math.max(0, beginDrain() - systemClock.monotonicMs()));
				plane.shutDown();
				// Waits for the gateways, whose last requests no other process would answer.
				if (gatewaysAre === "leaving") await Promise.race([gatewaysGone.promise, drainOver]);
				await drainListener(server);
				await Promise.race([server.stop(), drainOver]);
				await server.stop(true);
				await end();
			},
		};
	});
}

function placesOf({ runDir, gatewayUrl }: Pick<Config, "runDir" | "gatewayUrl">): GatewayAddress[] {
	if (runDir !== null) return gatewaySockets(runDir).map((unix) => ({ url: "http://gateway", unix }));
	return gatewayUrl === null ? [] : [{ url: gatewayUrl }];
}

/** Large enough for any playground chat. Routes check their own, smaller limits first. */
const BODY_BYTES_MAX = 40 * 1024 * 1024;

/** Listens at the socket that gateways use, or on its own port if the console runs alone. */
function startConsoleServer(
	config: MetricsAccess & Pick<Config, "host" | "port" | "trustedProxies">,
	deps: {
		plane: Pick<ConsolePlane, "handle" | "health">;
		log: Log;
		socket: string | undefined;
		/** For gateways; for other clients only if the console runs alone. */
		metrics: Metrics;
		/** True while every response must close its connection. */
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
	const ended = createUnreadBodies(connectionOf);
	const fetch = (request: Request) => (socket === undefined ? ended(request, answer(request)) : answer(request));
	const options = {
		maxRequestBodySize: BODY_BYTES_MAX,
		fetch: (request: Request) => (deps.endsConnections() ? withConnectionClose(fetch(request)) : fetch(request)),
		error: (error: Error) => uncaughtErrorResponse(error, "UNKNOWN"),
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
			: listenAtSocket(socket, options);
	return server;
}
