import type { Log } from "../base/log.ts";
import type { Config } from "../config.ts";
import { loadOrCreateSecrets, newInternalSecret } from "../secrets.ts";
import { createConsoleProxy, noConsoleProxy } from "./console-proxy.ts";
import { createGatewayPlane, type GatewayPlane } from "./gateway-plane.ts";
import { checkConfiguredFile } from "./open-catalog.ts";
import { startOnDatabase } from "./open-database.ts";
import { fetchOtherMetrics } from "./process-metrics.ts";
import { consoleSocket } from "./run-dir.ts";

/** Runs the gateway plane as this process. Rejects if `leaving` aborts while it opens the database. */
export async function serveGateway(config: Config, { log, leaving }: { log: Log; leaving?: AbortSignal }) {
	// Checked before a database is started. A child process's file was checked by its parent.
	if (config.runDir === null) await checkConfiguredFile(config);
	return startOnDatabase(config, { log, leaving }, async ({ cleanup, databaseUrl, end }) => {
		const plane = await createGatewayPlane(config, {
			log,
			databaseUrl,
			secrets: loadOrCreateSecrets(config),
			console:
				config.runDir === null ? noConsoleProxy : createConsoleProxy({ log }, { socket: consoleSocket(config.runDir) }),
			otherMetrics: config.runDir === null ? async () => [] : fetchOtherMetrics(config, config.runDir),
			internalSecret: config.internalSecret ?? newInternalSecret(),
			onDiskFailed: () => process.exit(1),
		});
		cleanup.add(() => plane.stop());
		const demo = config.demo ? await connectDemo(config, plane, log) : undefined;
		return {
			url: plane.url,
			demo: demo?.description,
			reload: () => plane.reload(),
			sendAway(to: { successor: boolean }) {
				plane.sendAway(to);
				return true;
			},
			async stop() {
				await plane.stop();
				await demo?.stop();
				await end();
			},
		};
	});
}

/** Connects the demo's models: servers found on this machine, or a built-in simulated server. */
async function connectDemo(config: Pick<Config, "port">, plane: GatewayPlane, log: Log) {
	const { connectDemoModels } = await import("../demo/demo-models.ts");
	const demo = await connectDemoModels({ log, fixedCatalog: plane.fixedCatalog }, { ownPort: config.port });
	await plane.reload();
	return demo;
}
