import { createAdmission } from "../admission/admission.ts";
import { createOpenRequests } from "../admission/open-requests.ts";
import type { Cleanup } from "../base/cleanup.ts";
import { createCleanup } from "../base/cleanup.ts";
import type { Clock } from "../base/clock.ts";
import { systemClock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { nextTurn } from "../base/next-turn.ts";
import type { Catalog, FixedCatalog } from "../catalog/catalog.ts";
import type { Config } from "../config.ts";
import type { Database } from "../db/database.ts";
import { createDatabase } from "../db/database.ts";
import { readDurability } from "../db/durability.ts";
import { startReportWriter } from "../deployments/report-writer.ts";
import { createLineCarrier, type LineCarrier } from "../gateway/batches/line-carrier.ts";
import { createBodyMemory } from "../gateway/body/body-memory.ts";
import type { Connection } from "../gateway/connection.ts";
import { createPgClaims } from "../gateway/idempotency/claims.ts";
import { createRunning } from "../gateway/idempotency/running.ts";
import { createInternalDoor } from "../gateway/internal-door.ts";
import { createAuthenticate } from "../gateway/serve/authenticate.ts";
import { createModelSpeeds } from "../gateway/serve/model-speeds.ts";
import { createOpenStreams } from "../gateway/serve/open-streams.ts";
import { createDigest } from "../keys/digest.ts";
import { createFailedAttempts } from "../keys/failed-attempts.ts";
import { keyLoader } from "../keys/key-loader.ts";
import { createKeyring, tickKeyring } from "../keys/keyring.ts";
import { createPgShareStore, LIMITS_CHANNEL } from "../keys/limit-shares.ts";
import { createLookUps } from "../keys/look-ups.ts";
import { createBooksHistory } from "../ledger/books-history.ts";
import { startBooksWatch } from "../ledger/books-watch.ts";
import { startDurabilityWatch } from "../ledger/durability-watch.ts";
import type { InstanceLease } from "../ledger/instance-lease.ts";
import { startInstanceLease } from "../ledger/instance-lease.ts";
import { countRefusedSettlements } from "../ledger/removal.ts";
import { createKeyLimits } from "../limits/key-limits.ts";
import { startCountWatch } from "../ops/count-watch.ts";
import { startMemoryReturn } from "../ops/memory-return.ts";
import { countOpenFindings } from "../ops/payment-findings.ts";
import { createRefusals } from "../ops/refusals.ts";
import { createRequestStats } from "../ops/request-stats.ts";
import type { Secrets } from "../secrets.ts";
import { createStatus } from "../status/status.ts";
import { createUpstreams } from "../upstream/upstreams.ts";
import type { ConsoleDoor } from "./console-door.ts";
import { createGatewayHealth } from "./gateway-health.ts";
import { createGatewayMetrics } from "./gateway-metrics.ts";
import { startGatewayServer, startInternalServer } from "./gateway-server.ts";
import { addressOf } from "./listening-address.ts";
import { openBatches } from "./open-batches.ts";
import { openCatalog } from "./open-catalog.ts";
import { openFiles } from "./open-files.ts";
import { openTraces } from "./open-traces.ts";
import type { ProcessMetrics } from "./process-metrics.ts";
import { metricsOfAll, workerLabel } from "./process-metrics.ts";
import { gatewaySocket } from "./run-dir.ts";
import { settledFields } from "./settled-fields.ts";

/** What answers inference: it knows keys and holds credit. It runs no job and knows no secret of people's. */
export interface GatewayPlane {
	/** Where it listens: `http://host:port`. */
	readonly url: string;
	readonly db: Database;
	readonly catalog: Catalog;
	/** For the first run, which has no file. */
	readonly fixedCatalog: FixedCatalog | undefined;
	readonly instanceLease: InstanceLease;
	/** What a console asks in the name of a key. */
	internal(connection: Connection): Promise<Response>;
	/** Reads the catalogue's file again; the console sees the new one afterwards. */
	reload(): Promise<void>;
	/**
	 * Serves on, but makes every answer the last one of its connection, so that clients take their next request
	 * elsewhere: a connection that is closed while it is idle can meet the next request half-way.
	 */
	sendAway(): void;
	/** Stops admitting, drains for `config.drainMs`, hands everything back, stops what it started. Harmless when repeated. */
	stop(): Promise<void>;
}

export interface GatewayPlaneDeps {
	readonly log: Log;
	readonly clock?: Clock;
	readonly databaseUrl: string;
	readonly secrets: Pick<Secrets, "keyPepper" | "instanceId">;
	/** Takes what is not for programs. */
	readonly console: ConsoleDoor;
	/** Of the other processes of this service. */
	readonly otherMetrics: () => Promise<readonly ProcessMetrics[]>;
	/** Signs what may be asked in the name of a key. */
	readonly internalSecret: string;
	onDiskFailed(error: unknown): void;
}

/** After the drain: for settlements to reach Postgres. */
const FORCED_STOP_MS = 2_000;
/** A heartbeat that hangs on a half-open connection must fail and be sent again well before the lease is over. */
const STATEMENT_DEADLINE_MS_MAX = 5_000;
/** Each costs Postgres one look at an index: 500 a second are some hundredths of a core. */
const FAILED_LOOK_UPS_PER_MINUTE_MAX = 30_000;

/** Builds every part once, in order. Each registers its end when it is made; `stop` runs them in reverse. */
export async function createGatewayPlane(config: Config, deps: GatewayPlaneDeps): Promise<GatewayPlane> {
	const cleanup = createCleanup({ clock: systemClock, log: deps.log });
	try {
		return await build(config, { ...deps, clock: deps.clock ?? systemClock, cleanup });
	} catch (error) {
		await cleanup.run();
		throw error;
	}
}

async function build(
	config: Config,
	deps: GatewayPlaneDeps & { clock: Clock; cleanup: Cleanup },
): Promise<GatewayPlane> {
	const { log, clock, cleanup, secrets } = deps;
	const { instanceId } = secrets;
	// Stops last: a collector that hangs keeps no credit from being handed back.
	const traces = await openTraces(config, { log });
	cleanup.add(async () => traces?.stop());
	const db = createDatabase(
		{ clock, log },
		{
			url: deps.databaseUrl,
			applicationName: `tollgate ${instanceId}`,
			statementDeadlineMs: Math.min(STATEMENT_DEADLINE_MS_MAX, config.leaseTtlMs / 4),
		},
	);
	cleanup.add(() => db.end());
	const { statements } = db;

	const { catalog, fixedCatalog } = await openCatalog(config, { statements, clock, log, cleanup });
	const keyring = createKeyring({ load: keyLoader(db.ledger), log });
	cleanup.add(tickKeyring(keyring, clock));
	const instanceLease = await startInstanceLease(
		{
			db,
			clock,
			log,
			apply: (entry) => keyring.apply(entry),
			reset: () => keyring.clear(),
			onDiskFailed(error) {
				log.error("the journal's disk failed; this process ends", { error });
				deps.onDiskFailed(error);
			},
		},
		{ instanceId, dataDir: config.dataDir, mode: config.journal, leaseTtlMs: config.leaseTtlMs },
	);
	cleanup.add(() => instanceLease.stop(FORCED_STOP_MS));

	const upstreams = createUpstreams({ clock, log }, { limits: () => catalog.limits() });
	upstreams.sync(catalog.current());
	catalog.onChange((snapshot) => upstreams.sync(snapshot));
	cleanup.add(() => upstreams.stop());
	const reports = startReportWriter({ statements, clock, log, catalog, upstreams }, { instanceId });
	cleanup.add(() => reports.stop());
	const openStreams = createOpenStreams({ clock });
	cleanup.add(() => openStreams.stop());

	const stats = createRequestStats();
	const keyLimits = createKeyLimits({
		clock,
		shared: { store: createPgShareStore({ statements, instanceLease }), log },
	});
	cleanup.add(() => keyLimits.stop());
	await db.listen(
		LIMITS_CHANNEL,
		(keyId) => keyLimits.recall(keyId),
		() => {},
	);
	const speeds = createModelSpeeds({ clock });
	let carrier: LineCarrier | undefined;
	const admission = createAdmission({
		ledger: () => instanceLease.ledger(),
		closedReason: () => instanceLease.gate.reason(),
		keyLimits,
		openRequests: createOpenRequests({ limits: () => catalog.limits() }),
		clock,
		onSettled(event) {
			stats.record(event);
			if (catalog.current().routes.size > 0) speeds.record(event);
			carrier?.settled(event);
			traces?.settled(event);
			if (log.isOn("debug")) log.debug("a request was settled", settledFields(event));
		},
	});
	const failedAttempts = createFailedAttempts(
		{ clock },
		{ perMinuteMax: () => catalog.limits().authFailuresPerMinute },
	);
	const lookUps = createLookUps(
		{ keyring, failedAttempts, clock },
		{ failuresPerMinuteMax: FAILED_LOOK_UPS_PER_MINUTE_MAX },
	);
	const digest = createDigest(secrets.keyPepper);
	const refusals = createRefusals({ statements, clock, log });
	cleanup.add(() => refusals.stop());
	const books = startBooksWatch({ history: createBooksHistory(statements), clock, log });
	cleanup.add(() => books.stop());
	const durability = startDurabilityWatch({ read: () => readDurability(statements), clock, log });
	cleanup.add(() => durability.stop());
	const watch = (what: string, count: () => Promise<number>) => {
		const watching = startCountWatch({ what, count, clock, log });
		cleanup.add(() => watching.stop());
		return watching;
	};
	const payments = watch("payments in question", () => countOpenFindings(statements));
	const refused = watch("refused settlements", () => countRefusedSettlements(statements));
	const gateway = {
		authenticate: createAuthenticate(
			{ keyring, lookUps, digest, failedAttempts, clock },
			{ serviceName: config.serviceName },
		),
		refusals,
		catalog,
		admission,
		upstreams,
		openStreams,
		speeds,
		bodyMemory: createBodyMemory({ limits: () => catalog.limits() }),
		clock,
		log,
		traces,
		stats,
		limits: () => catalog.limits(),
	};
	const admitting = () => instanceLease.gate.isOpen();
	const status = createStatus({ statements, clock, log, catalog, upstreams, admitting });
	cleanup.add(() => status.stop());
	const files = openFiles(config, { db, clock, log, cleanup, catalog, secrets });
	carrier = createLineCarrier({ ...gateway, keyring });
	const batches = openBatches(config, { db, clock, log, cleanup, catalog, secrets, files, carrier });
	const internal = createInternalDoor({ ...gateway, keyring, files, batches }, { secret: deps.internalSecret });
	// The console sees what is served from the first request on.
	await reports.write();

	const metrics = createGatewayMetrics(
		{
			stats,
			instanceLease,
			refusals,
			books,
			clock,
			cleanup,
			openRequests: () => server.pendingRequests,
			openStreams: () => openStreams.size(),
			waitingForReplica: () => upstreams.waiting(),
			keyring: () => keyring.size(),
			replicas: () => upstreams.replicas(),
			paymentFindings: () => payments.last(),
			settlementsRefused: () => refused.last(),
		},
		workerLabel(config),
	);
	let sendsAway = false;
	const claims = createPgClaims({ statements, instanceLease });
	const running = createRunning({ claims, clock, log });
	cleanup.add(() => running.stop());
	const server = startGatewayServer(config, {
		idempotency: { claims, running },
		...gateway,
		statements,
		status,
		health: createGatewayHealth({ instanceLease, catalog, books, payments, durability, console: deps.console, clock }),
		files,
		batches,
		metrics: metricsOfAll(metrics, deps.otherMetrics, workerLabel(config)),
		console: deps.console,
		internal,
		internalOnPort: config.runDir === null && config.internalSecret !== null,
		endsConnections: () => sendsAway,
	});
	cleanup.add(() => server.stop(true));
	const memoryReturn = startMemoryReturn({
		clock,
		open: () => server.pendingRequests,
		resident: () => process.memoryUsage.rss(),
		collect: () => Bun.gc(true),
	});
	cleanup.add(() => memoryReturn.stop());
	const internalServer =
		config.runDir === null
			? undefined
			: startInternalServer(gatewaySocket(config.runDir, config.workerIndex ?? 1), {
					internal,
					metrics,
				});
	cleanup.add(() => internalServer?.stop(true));

	async function stopNow(): Promise<void> {
		const drainEndMs = clock.monotonicMs() + config.drainMs;
		void batches.stop();
		// Credit is given back after the last request and not before: one whose body was still on its way when the
		// door closed is served like the others.
		const closed = Promise.all([server.stop(), internalServer?.stop()]);
		await Promise.race([closed, Bun.sleep(config.drainMs)]);
		const drained = instanceLease.stop(Math.max(0, drainEndMs - clock.monotonicMs()) + FORCED_STOP_MS);
		await Promise.race([drained, Bun.sleep(Math.max(0, drainEndMs - clock.monotonicMs()))]);
		// Who is still here gets an error event and the usage so far.
		openStreams.shutDown();
		// What they wrote last leaves with the next turn.
		await nextTurn();
		await server.stop(true);
		await drained;
		await cleanup.run();
	}

	let stopping: Promise<void> | undefined;
	return {
		url: addressOf(config.host, server.port),
		db,
		catalog,
		fixedCatalog,
		instanceLease,
		internal,
		async reload() {
			await catalog.reload();
			await reports.write();
		},
		sendAway() {
			sendsAway = true;
		},
		stop() {
			stopping ??= stopNow();
			return stopping;
		},
	};
}
