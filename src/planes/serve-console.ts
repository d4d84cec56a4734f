import { systemClock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Config } from "../config.ts";
import { readOwnBrand } from "../console/brand/shown-brand.ts";
import { createGatewayClient, type GatewayPlace } from "../console/gateway-client.ts";
import { STOPPING } from "../ops/health.ts";
import { loadOrCreateSecrets, newInternalSecret } from "../secrets.ts";
import { createConsolePlane } from "./console-plane.ts";
import { startConsoleServer } from "./console-server.ts";
import { drainListener } from "./drain-listener.ts";
import { addressOf } from "./listening-address.ts";
import { onDatabase } from "./open-database.ts";
import { createProcessMetrics, workerLabel } from "./process-metrics.ts";
import { consoleSocket, gatewaySockets } from "./run-dir.ts";

/**
 * Runs the console plane in its own process. Rejects once `leaving` aborts while it waits for others at its database.
 */
export async function serveConsole(config: Config, { log, leaving }: { log: Log; leaving?: AbortSignal }) {
	const { runDir } = config;
	const brand = await readOwnBrand(config);
	return onDatabase(config, { log, leaving }, async ({ cleanup, databaseUrl, end }) => {
		const plane = createConsolePlane(config, {
			log,
			brand,
			databaseUrl,
			secrets: loadOrCreateSecrets(config),
			gateways: createGatewayClient(
				{ clock: systemClock, log, places: () => placesOf(config) },
				{ secret: config.internalSecret ?? newInternalSecret() },
			),
			listeningAt: () => addressOf(config.host, runDir === null ? server.port : config.port),
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
						: { ...report, ready: false, reasons: [STOPPING, ...report.reasons] };
				},
			},
			log,
			socket: runDir === null ? undefined : consoleSocket(runDir),
			metrics,
			endsConnections: () => drainEndMs !== undefined,
		});
		return {
			url: runDir === null ? addressOf(config.host, server.port) : undefined,
			// A console has no catalogue.
			reload: async () => {},
			sendAway({ successor }: { successor: boolean }) {
				// With a successor, new requests already reach it. Without one, gateways keep proxying while they accept
				// requests.
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
				// The gateways' last requests are still proxied here, and no other process answers them.
				if (gatewaysAre === "leaving") await Promise.race([gatewaysGone.promise, drainOver]);
				await drainListener(server);
				await Promise.race([server.stop(), drainOver]);
				await server.stop(true);
				await end();
			},
		};
	});
}

function placesOf({ runDir, gatewayUrl }: Pick<Config, "runDir" | "gatewayUrl">): GatewayPlace[] {
	if (runDir !== null) return gatewaySockets(runDir).map((unix) => ({ url: "http://gateway", unix }));
	return gatewayUrl === null ? [] : [{ url: gatewayUrl }];
}
