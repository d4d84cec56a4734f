import { createCleanup } from "../../src/base/cleanup.ts";
import { type Clock, systemClock } from "../../src/base/clock.ts";
import type { Log } from "../../src/base/log.ts";
import type { Config } from "../../src/config.ts";
import { readOwnBrand } from "../../src/console/brand/shown-brand.ts";
import { createInProcessGatewayClient } from "../../src/console/gateway-client.ts";
import type { JobOptions } from "../../src/jobs/jobs.ts";
import { type ConsolePlane, createConsolePlane } from "../../src/planes/console-plane.ts";
import { createGatewayPlane, type GatewayPlane } from "../../src/planes/gateway-plane.ts";
import { type OpenDatabase, openDatabase } from "../../src/planes/open-database.ts";
import { createProcessMetrics } from "../../src/planes/process-metrics.ts";
import { loadOrCreateSecrets, newInternalSecret, type Secrets } from "../../src/secrets.ts";

/** Gateway and console in one process. `stop` stops the console, then the gateway; it may be called repeatedly. */
export interface App extends GatewayPlane {
	readonly people: ConsolePlane;
	readonly config: Config;
	readonly secrets: Secrets;
}

export async function createApp(
	config: Config,
	deps: {
		log: Log;
		clock?: Clock;
		jobs?: JobOptions | undefined;
		/** Default: the configured database, which is opened here. */
		database?: OpenDatabase | undefined;
		onDiskFailed?: (error: unknown) => void;
	},
): Promise<App> {
	const { log } = deps;
	const clock = deps.clock ?? systemClock;
	for (const warning of config.warnings) log.warn(warning);
	const cleanup = createCleanup({ clock: systemClock, log });
	let database: OpenDatabase | undefined;
	const secrets = loadOrCreateSecrets(config);
	const internalSecret = newInternalSecret();
	let gateway: GatewayPlane | undefined;
	let people: ConsolePlane | undefined;
	try {
		database = deps.database ?? (await openDatabase({ log }, config));
		const { url: databaseUrl } = database;
		const shared = { log, clock, databaseUrl, secrets };
		people = createConsolePlane(config, {
			brand: await readOwnBrand(config),
			...shared,
			jobs: deps.jobs,
			gateways: createInProcessGatewayClient(
				{ clock, handler: (connection) => ready(gateway).internal(connection) },
				{ secret: internalSecret },
			),
			listeningAt: () => ready(gateway).url,
		});
		const { handle } = people;
		const consoleMetrics = createProcessMetrics({ cleanup }, people.metrics, { worker: "console" });
		gateway = await createGatewayPlane(config, {
			...shared,
			console: { handle, problem: () => undefined },
			otherMetrics: async () => [{ worker: "console", text: await consoleMetrics.text() }],
			internalSecret,
			onDiskFailed: deps.onDiskFailed ?? (() => process.exit(1)),
		});
	} catch (error) {
		await people?.stop();
		await cleanup.run();
		await database?.release();
		throw error;
	}
	const parts = { gateway, people, database };

	let stopping: Promise<void> | undefined;
	return {
		...gateway,
		people,
		config,
		secrets,
		stop() {
			stopping ??= (async () => {
				parts.people.shutDown();
				await parts.gateway.stop();
				await parts.people.stop();
				await cleanup.run();
				await parts.database.release();
			})();
			return stopping;
		},
	};
}

function ready(gateway: GatewayPlane | undefined): GatewayPlane {
	if (gateway === undefined) throw new Error("the gateway is not listening yet");
	return gateway;
}
