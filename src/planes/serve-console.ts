import { createCleanup } from "../base/cleanup.ts";
import { systemClock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Config } from "../config.ts";
import { readOwnBrand } from "../console/brand/shown-brand.ts";
import type { GatewayPlace } from "../console/gateway-client.ts";
import { createGatewayClient } from "../console/gateway-client.ts";
import { loadOrCreateSecrets } from "../secrets.ts";
import { createConsoleMetrics } from "./console-metrics.ts";
import { createConsolePlane } from "./console-plane.ts";
import { startConsoleServer } from "./console-server.ts";
import { newInternalSecret } from "./internal-secret.ts";
import { addressOf } from "./listening-address.ts";
import { openDatabase } from "./open-database.ts";
import { workerLabel } from "./process-metrics.ts";
import { consoleSocket, gatewaySockets } from "./run-dir.ts";

/** The console plane as a process of its own. */
export async function serveConsole(config: Config, { log }: { log: Log }) {
	const { runDir } = config;
	const cleanup = createCleanup({ clock: systemClock, log });
	try {
		const plane = createConsolePlane(config, {
			log,
			brand: await readOwnBrand(config),
			databaseUrl: await openDatabase({ log, cleanup }, config),
			secrets: loadOrCreateSecrets(config),
			gateways: createGatewayClient(
				{ clock: systemClock, log, places: () => placesOf(config) },
				{ secret: config.internalSecret ?? newInternalSecret() },
			),
			listeningAt: () => addressOf(config.host, runDir === null ? server.port : config.port),
		});
		cleanup.add(() => plane.stop());
		const metrics = createConsoleMetrics({ figures: plane.figures, cleanup }, workerLabel(config));
		const server = startConsoleServer(config, {
			plane,
			log,
			socket: runDir === null ? undefined : consoleSocket(runDir),
			metrics,
		});
		return {
			url: runDir === null ? addressOf(config.host, server.port) : undefined,
			// It has no catalogue of its own.
			reload: async () => {},
			// Whoever asks finds the successor already.
			sendAway: () => false,
			async stop() {
				plane.shutDown();
				await Promise.race([server.stop(), Bun.sleep(config.drainMs)]);
				await server.stop(true);
				await cleanup.run();
			},
		};
	} catch (error) {
		await cleanup.run();
		throw error;
	}
}

function placesOf({ runDir, gatewayUrl }: Config): GatewayPlace[] {
	if (runDir !== null) return gatewaySockets(runDir).map((unix) => ({ url: "http://gateway", unix }));
	return gatewayUrl === null ? [] : [{ url: gatewayUrl }];
}
