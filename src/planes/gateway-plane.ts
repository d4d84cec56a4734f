import { createAdmission } from "../admission/admission.ts";
import { createOpenRequests } from "../admission/open-requests.ts";
import { type Cleanup, createCleanup } from "../base/cleanup.ts";
import { type Clock, systemClock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { chargeCancelledRequest } from "../base/time-slice.ts";
import type { Catalog } from "../catalog/catalog.ts";
import { mustBeRepeated } from "../cluster/lost-acts.ts";
import type { Config } from "../config.ts";
import { createDatabase } from "../db/database.ts";
import { startReportWriter } from "../deployments/report-writer.ts";
import { createDiskRoom } from "../files/disk-room.ts";
import { createLineCarrier, type LineCarrier } from "../gateway/batches/line-carrier.ts";
import { createBodyMemory } from "../gateway/body/body-memory.ts";
import { createBodyReads } from "../gateway/body/body-reads.ts";
import { createSilentConnections } from "../gateway/connection.ts";
import { createIdempotency } from "../gateway/idempotency/idempotency.ts";
import { createPgClaims, createRunningClaims } from "../gateway/idempotency/running.ts";
import { createInternalApi } from "../gateway/internal-api.ts";
import { createModelSpeeds } from "../gateway/serve/model-speeds.ts";
import { createOpenStreams } from "../gateway/serve/open-streams.ts";
import { createUnreadAnswers } from "../gateway/serve/unread-answers.ts";
import { managementDocument } from "../management/management-document.ts";
import { createThresholdCollector, startMemoryReturn } from "../ops/memory-return.ts";
import { residentBytes } from "../ops/process-readings.ts";
import { createRefusals } from "../ops/refusals.ts";
import { createRequestStats } from "../ops/request-stats.ts";
import type { Secrets } from "../secrets.ts";
import { createStatus } from "../status/status.ts";
import { type AnswerMemory, createAnswerMemory } from "../upstream/call/answer-memory.ts";
import { createUpstreams, type Upstreams } from "../upstream/upstreams.ts";
import type { ConsoleProxy } from "./console-proxy.ts";
import { createGatewayHealth, createGatewayMetrics, settledFields, startGatewayWatches } from "./gateway-health.ts";
import { drainGateway, openBatches, openFiles, openKeyLimits, openKeys, openLease } from "./gateway-parts.ts";
import { startGatewayServer, startInternalServer } from "./gateway-server.ts";
import { listeningUrl } from "./listening-address.ts";
import { memoryPerWorker, openCatalog } from "./open-catalog.ts";
import { metricsOfAll, type ProcessMetrics, workerLabel } from "./process-metrics.ts";
import { gatewaySocket } from "./run-dir.ts";

export interface GatewayPlaneDeps {
	readonly log: Log;
	readonly clock?: Clock;
	readonly databaseUrl: string;
	readonly secrets: Pick<Secrets, "keyPepper" | "instanceId">;
	readonly console: ConsoleProxy;
	/** Metrics of this service's other processes. */
	readonly otherMetrics: () => Promise<readonly ProcessMetrics[]>;
	/** Secret with which the console signs requests that it sends for a key. */
	readonly internalSecret: string;
	onDiskFailed(error: unknown): void;
}

/** Deadline for the heartbeat's statement: on a half-open connection it must fail early enough to be retried. */
const STATEMENT_DEADLINE_MS_MAX = 5_000;

export type GatewayPlane = Awaited<ReturnType<typeof build>>;

/**
 * The gateway plane answers inference: it knows keys and holds credit, runs no jobs and has no secret of the console.
 * Builds every part once, in order; `stop` ends the parts in reverse order.
 */
export async function createGatewayPlane(config: Config, deps: GatewayPlaneDeps): Promise<GatewayPlane> {
	const cleanup = createCleanup({ clock: systemClock, log: deps.log });
	try {
		return await build(config, { ...deps, clock: deps.clock ?? systemClock, cleanup });
	} catch (error) {
		await cleanup.run();
		throw error;
	}
}

async function build(config: Config, deps: GatewayPlaneDeps & { clock: Clock; cleanup: Cleanup }) {
	const { log, clock, cleanup, secrets } = deps;
	// Stopped last, so that a trace collector that hangs does not delay the return of credit.
	const traces = await openTraces(config, log);
	cleanup.add(async () => traces?.stop());
	const db = createDatabase(
		{ clock, log },
		{
			url: deps.databaseUrl,
			applicationName: `tollgate ${secrets.instanceId}`,
			dataDir: config.dataDir,
			statementDeadlineMs: Math.min(STATEMENT_DEADLINE_MS_MAX, config.leaseTtlMs / 4),
		},
	);
	cleanup.add(() => db.end());
	const { statements } = db;

	const { catalog, fixedCatalog } = await openCatalog(config, { statements, clock, log, cleanup });
	const { keyring, authenticate } = openKeys(config, { db, clock, log, cleanup, catalog, secrets });
	const instanceLease = await openLease(config, { ...deps, db, keyring });

	const answers = createAnswerMemory(
		{ clock, collect: createThresholdCollector(MEMORY, memoryPerWorker(config.workers)) },
		{ limits: () => catalog.limits() },
	);
	const upstreams = openUpstreams(catalog, { clock, log, cleanup, answers }, secrets.keyPepper);
	const reports = startReportWriter({ statements, clock, log, catalog, upstreams }, secrets);
	cleanup.add(() => reports.stop());
	const openStreams = createOpenStreams({ clock });
	cleanup.add(() => openStreams.stop());

	const stats = createRequestStats();
	const keyLimits = await openKeyLimits({ db, instanceLease, clock, log, cleanup });
	const speeds = createModelSpeeds({ clock });
	let carrier: LineCarrier | undefined;
	const admission = createAdmission({
		ledger: () => instanceLease.ledger(),
		closedReason: () => instanceLease.gate.reason(),
		keyLimits,
		limits: catalog.limits,
		openRequests: createOpenRequests({ limits: () => catalog.limits() }),
		clock,
		onSettled(event) {
			stats.record(event);
			if (event.ending === "client_left") chargeCancelledRequest(event.account);
			if (catalog.current().routes.size > 0) speeds.record(event);
			carrier?.settled(event);
			traces?.settled(event);
			if (log.isOn("debug")) log.debug("a request was settled", settledFields(event));
		},
	});
	const refusals = createRefusals({ statements, clock, log });
	cleanup.add(() => refusals.stop());
	const watches = startGatewayWatches({ statements, url: db.url, clock, log, cleanup });
	const { books, durability, payments, refused, lostActs, pooled } = watches;
	const clients = {
		bodyMemory: createBodyMemory({ limits: catalog.limits }),
		bodyReads: createBodyReads(clock),
		unreadAnswers: createUnreadAnswers({ answers, limits: catalog.limits }),
		openStreams,
		silentConnections: createSilentConnections(clock),
	};
	const serve = {
		authenticate,
		catalog: { current: catalog.current, limits: catalog.limits, fastestFirst: speeds.fastestFirst },
		admission,
		upstreams,
		clients,
		telemetry: { log, traces, stats, refusals },
		clock,
	};
	const admitting = () => instanceLease.problem() === undefined;
	const status = createStatus({ clock, log, catalog, upstreams, statements, admitting });
	cleanup.add(() => status.stop());
	const room = createDiskRoom(config.dataDir);
	const files = openFiles(config, { db, clock, log, cleanup, catalog, secrets, room });
	carrier = createLineCarrier(serve, keyring);
	const batches = openBatches(config, { db, clock, log, cleanup, catalog, secrets, files, carrier });
	const internal = createInternalApi({ serve, keyring, files, batches }, { secret: deps.internalSecret });
	// Written before serving, so that the console shows the models from the first request on.
	await reports.write();

	const metrics = createGatewayMetrics(
		{
			stats,
			instanceLease,
			refusals,
			books,
			cleanup,
			openRequests: () => server.pendingRequests,
			openStreams: () => openStreams.size(),
			waitingForReplica: () => upstreams.waiting(),
			keyring: () => keyring.size(),
			replicas: () => upstreams.replicas(),
			paymentFindings: () => payments.last(),
			settlementsRefused: () => refused.last(),
			actsLost: () => lostActs.last()?.filter(mustBeRepeated).length,
			batchesRefused: () => batches.refused(),
			diskReserves: () => room.reserves(),
		},
		workerLabel(config),
	);
	let sendsAway = false;
	let drainEndMs: number | undefined;
	const claims = createPgClaims({ statements, clock, instanceLease });
	const running = createRunningClaims({ claims, clock, log, room });
	cleanup.add(() => running.stop());
	const idempotency = createIdempotency({
		...{ claims, running, admission, clock, limits: catalog.limits },
		...clients,
	});
	const server = startGatewayServer(config, {
		endpoints: {
			serve: { ...serve, idempotency },
			...{ statements, status, files, batches },
			documentPart: managementDocument,
		},
		cors: catalog.cors,
		health: createGatewayHealth({
			stopping: () => drainEndMs !== undefined,
			...{ instanceLease, catalog, books, payments, durability, lostActs, pooled, room, console: deps.console },
		}),
		metrics: metricsOfAll(metrics, deps.otherMetrics, workerLabel(config)),
		console: deps.console,
		internal,
		internalOnPort: config.runDir === null && config.internalSecret !== null,
		endsConnections: () => sendsAway,
	});
	cleanup.add(() => server.stop(true));
	returnMemory(server, { clock, cleanup });
	const internalServer = openInternalServer(config, { internal, metrics, cleanup });

	function beginDrain(): number {
		sendsAway = true;
		drainEndMs ??= clock.monotonicMs() + config.drainMs;
		return drainEndMs;
	}

	let stopping: Promise<void> | undefined;
	return {
		/** URL at which the gateway listens: `http://host:port`. */
		url: listeningUrl(config.host, server.port),
		db,
		catalog,
		/** Catalogue of the first start without a configuration; it has no file. */
		fixedCatalog,
		instanceLease,
		/** Handles requests that the console sends for a key. */
		internal,
		/** Reads the catalogue's file again and reports the result to the console. */
		async reload() {
			await catalog.reload();
			await reports.write();
		},
		/**
		 * From now on each connection closes after its response, so that clients reconnect elsewhere. Idle connections
		 * stay: a request may be arriving. Without a successor `/readyz` fails and the drain starts.
		 */
		sendAway({ successor }: { successor: boolean }) {
			if (successor) sendsAway = true;
			else beginDrain();
		},
		/** Stops admission, drains for `config.drainMs` and returns all credit. Repeated calls return the same promise. */
		stop() {
			stopping ??= drainGateway(
				{
					clock,
					log,
					cleanup,
					batches,
					server,
					internalServer,
					instanceLease,
					openStreams,
					upstreams,
					bodyReads: clients.bodyReads,
				},
				{ drainEndMs: beginDrain() },
			);
			return stopping;
		},
	};
}

function openUpstreams(
	catalog: Catalog,
	deps: { clock: Clock; log: Log; cleanup: Cleanup; answers: AnswerMemory },
	secret: string,
): Upstreams {
	const upstreams = createUpstreams(deps, { limits: () => catalog.limits(), secret });
	upstreams.sync(catalog.current());
	catalog.onChange((snapshot) => upstreams.sync(snapshot));
	deps.cleanup.add(() => upstreams.stop());
	return upstreams;
}

/** Server on a Unix socket for the service's other processes; undefined without a supervisor. */
function openInternalServer(
	{ runDir, workerIndex }: Pick<Config, "runDir" | "workerIndex">,
	{ cleanup, ...parts }: Parameters<typeof startInternalServer>[1] & { cleanup: Cleanup },
) {
	if (runDir === null) return undefined;
	const server = startInternalServer(gatewaySocket(runDir, workerIndex ?? 1), parts);
	cleanup.add(() => server.stop(true));
	return server;
}

const MEMORY = { resident: residentBytes, collect: () => Bun.gc(true) };

function returnMemory(server: { readonly pendingRequests: number }, deps: { clock: Clock; cleanup: Cleanup }): void {
	const memoryReturn = startMemoryReturn({ ...MEMORY, clock: deps.clock, open: () => server.pendingRequests });
	deps.cleanup.add(() => memoryReturn.stop());
}

/** Loads OpenTelemetry only if traces are configured. */
async function openTraces({ traces }: Pick<Config, "traces">, log: Log) {
	if (traces === null) return undefined;
	const { createOtlpTraces } = await import("../traces/otlp-traces.ts");
	return createOtlpTraces({ log }, traces);
}
