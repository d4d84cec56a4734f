import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { createAdmission } from "./admission/admission.ts";
import type { Cleanup } from "./base/cleanup.ts";
import { createCleanup } from "./base/cleanup.ts";
import type { Clock } from "./base/clock.ts";
import { systemClock } from "./base/clock.ts";
import { Fault } from "./base/fault.ts";
import type { Log } from "./base/log.ts";
import type { Catalog, FixedCatalog } from "./catalog/catalog.ts";
import { createCatalog, createFixedCatalog } from "./catalog/catalog.ts";
import { watchCatalog } from "./catalog/watch.ts";
import type { Config } from "./config.ts";
import { createConsole } from "./console/console.ts";
import { createPages } from "./console/pages.ts";
import { createBooksHistory } from "./console/reconciliation.ts";
import type { Database } from "./db/database.ts";
import { createDatabase } from "./db/database.ts";
import { EMBEDDED_STOP_MS_MAX, startEmbeddedPostgres } from "./db/embedded.ts";
import { migrate } from "./db/migrate.ts";
import { createStatements } from "./db/statements.ts";
import { INFERENCE } from "./gateway/inference.ts";
import { createAuthenticate } from "./gateway/serve/authenticate.ts";
import { createOpenStreams } from "./gateway/serve/open-streams.ts";
import { createServeAs } from "./gateway/serve/serve-as.ts";
import { createDigest } from "./keys/digest.ts";
import { createFailedAttempts } from "./keys/failed-attempts.ts";
import { keyLoader } from "./keys/key-loader.ts";
import { createKeyring } from "./keys/keyring.ts";
import type { InstanceLease } from "./ledger/instance-lease.ts";
import { startInstanceLease } from "./ledger/instance-lease.ts";
import { reconcile } from "./ledger/reconcile.ts";
import { createReconciler } from "./ledger/reconciler.ts";
import { createKeyLimits } from "./limits/key-limits.ts";
import { createHealth } from "./ops/health.ts";
import { createMetrics } from "./ops/metrics.ts";
import { createRefusals, refusalReadings } from "./ops/refusals.ts";
import { createRequestStats } from "./ops/request-stats.ts";
import { serviceReadings } from "./ops/service-readings.ts";
import type { Secrets } from "./secrets.ts";
import { loadOrCreateSecrets } from "./secrets.ts";
import { startServer } from "./server.ts";
import { createStatus } from "./status/status.ts";
import { createUpstreams } from "./upstream/upstreams.ts";

export interface App {
	/** Where it listens: `http://host:port`. */
	readonly url: string;
	readonly config: Config;
	readonly secrets: Secrets;
	readonly db: Database;
	readonly catalog: Catalog;
	/** For the first run, which has no file. */
	readonly fixedCatalog: FixedCatalog | undefined;
	readonly instanceLease: InstanceLease;
	/** Reads the catalogue's file again. */
	reload(): Promise<void>;
	/**
	 * Serves on, but makes every answer the last one of its connection, so that clients take their next request
	 * elsewhere: a connection that is closed while it is idle can meet the next request half-way.
	 */
	sendAway(): void;
	/** Stops admitting, drains for `config.drainMs`, hands everything back, stops what it started. Harmless when repeated. */
	stop(): Promise<void>;
}

/** After the drain: for settlements to reach Postgres. */
const FORCED_STOP_MS = 2_000;
const BOOKS_DEADLINE_MS = 10 * 60_000;
/** Settlements are flushed every tenth of a second; older ones than this mean that Postgres does not take them. */
const UNFLUSHED_WARNING_MS = 5_000;

/** A heartbeat that hangs on a half-open connection must fail and be sent again well before the lease is over. */
const STATEMENT_DEADLINE_MS_MAX = 5_000;

/** Builds every part once, in order. Each registers its end when it is made; `stop` runs them in reverse. */
export async function createApp(
	config: Config,
	deps: { log: Log; clock?: Clock; onDiskFailed?: (error: unknown) => void },
): Promise<App> {
	const { log } = deps;
	const clock = deps.clock ?? systemClock;
	const cleanup = createCleanup({ clock: systemClock, log });
	try {
		return await build(config, { log, clock, onDiskFailed: deps.onDiskFailed ?? (() => process.exit(1)) }, cleanup);
	} catch (error) {
		await cleanup.run();
		throw error;
	}
}

async function build(
	config: Config,
	deps: { log: Log; clock: Clock; onDiskFailed: (error: unknown) => void },
	cleanup: Cleanup,
): Promise<App> {
	const { log, clock } = deps;
	for (const warning of config.warnings) log.warn(warning);
	const secrets = loadOrCreateSecrets(config);
	const databaseUrl = config.databaseUrl ?? (await embeddedUrl(config, log, cleanup));
	await migrate({ log }, databaseUrl);
	const db = createDatabase(
		{ clock, log },
		{
			url: databaseUrl,
			applicationName: `tollgate ${secrets.instanceId}`,
			statementDeadlineMs: Math.min(STATEMENT_DEADLINE_MS_MAX, config.leaseTtlMs / 4),
		},
	);
	cleanup.add(() => db.end());

	const { catalog, fixedCatalog } = await openCatalog(config, { db, clock, log }, cleanup);
	const keyring = createKeyring({ load: keyLoader(db.statements), log });
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
		{ instanceId: secrets.instanceId, dataDir: config.dataDir, mode: config.journal, leaseTtlMs: config.leaseTtlMs },
	);
	cleanup.add(() => instanceLease.stop(FORCED_STOP_MS));

	const upstreams = createUpstreams({ clock, log }, { limits: catalog.limits() });
	upstreams.sync(catalog.current());
	catalog.onChange((snapshot) => upstreams.sync(snapshot));
	cleanup.add(() => upstreams.stop());
	const openStreams = createOpenStreams({ clock });
	cleanup.add(() => openStreams.stop());

	const stats = createRequestStats();
	const admission = createAdmission({
		ledger: () => instanceLease.ledger(),
		closedReason: () => instanceLease.gate.reason(),
		keyLimits: createKeyLimits({ clock }),
		clock,
		onSettled: (event) => stats.record(event),
	});
	const failedAttempts = createFailedAttempts({ clock }, { perMinuteMax: catalog.limits().authFailuresPerMinute });
	const digest = createDigest(secrets.keyPepper);
	const refusals = createRefusals({ statements: db.statements, clock, log });
	cleanup.add(() => refusals.stop());
	const authenticate = createAuthenticate(
		{ keyring, digest, failedAttempts, clock },
		{ serviceName: config.serviceName },
	);
	// The checks read every usage row: on a connection of their own, with time.
	const books = createStatements(
		{ clock, log },
		{
			url: databaseUrl,
			connectionsMax: 1,
			statementDeadlineMs: BOOKS_DEADLINE_MS,
			applicationName: `tollgate ${secrets.instanceId} books`,
		},
	);
	cleanup.add(() => books.end());
	const reconciler = createReconciler({
		check: () => reconcile(books),
		history: createBooksHistory(books),
		clock,
		log,
	});
	cleanup.add(() => reconciler.stop());
	const health = createHealth({
		ready: [
			() => instanceLease.gate.reason(),
			() => (catalog.current().revision === 0 ? "the catalogue is not loaded" : undefined),
		],
		warn: [
			() => (catalog.problems().length > 0 ? "the newest catalogue file has problems: see the log" : undefined),
			() => (reconciler.last()?.ok === false ? "the books are broken: run `tollgate ledger reconcile`" : undefined),
			() => settlementsLate(instanceLease),
		],
	});
	const metrics = createMetrics(stats, [
		...serviceReadings({
			open: () => instanceLease.gate.isOpen(),
			ledger: () => ledgerTotals(instanceLease),
			openStreams: () => openStreams.size(),
			waitingForReplica: () => upstreams.waiting(),
			keyring: () => keyring.size(),
			replicas: () => upstreams.replicas(),
			booksOk: () => reconciler.last()?.ok,
		}),
		...refusalReadings(refusals),
	]);
	const gateway = {
		authenticate,
		refusals,
		catalog,
		admission,
		upstreams,
		openStreams,
		clock,
		log,
		stats,
		limits: () => catalog.limits(),
	};
	const serveAs = createServeAs({ ...gateway, keyring });
	const admitting = () => instanceLease.gate.isOpen();
	const status = createStatus({ statements: db.statements, clock, log, catalog, upstreams, admitting });
	cleanup.add(() => status.stop());
	const people = createConsole({
		config,
		db,
		clock,
		log,
		catalog,
		upstreams,
		digest,
		consoleSecret: secrets.consoleSecret,
		chatAs: (keyDigest, connection) => serveAs(INFERENCE["/v1/chat/completions"], keyDigest, connection),
		books: reconciler,
		listeningAt: () => addressOf(config.host, server.port),
	});
	cleanup.add(() => people.stop());
	let sendsAway = false;
	const endsConnections = () => sendsAway;
	const pages = createPages({ log }, { isHttps: () => config.publicUrl?.startsWith("https://") ?? false });
	const server = startServer(config, {
		...gateway,
		statements: db.statements,
		status,
		health,
		metrics,
		console: people,
		pages,
		endsConnections,
	});
	cleanup.add(() => server.stop(true));

	let stopping: Promise<void> | undefined;
	return {
		url: addressOf(config.host, server.port),
		config,
		secrets,
		db,
		catalog,
		fixedCatalog,
		instanceLease,
		async reload() {
			await catalog.reload();
		},
		sendAway() {
			sendsAway = true;
		},
		stop() {
			stopping ??= (async () => {
				people.shutDown();
				const drainEndMs = clock.monotonicMs() + config.drainMs;
				// Credit is given back after the last request and not before: one whose body was still on its way when the
				// door closed is served like the others.
				await Promise.race([server.stop(), Bun.sleep(config.drainMs)]);
				const drained = instanceLease.stop(Math.max(0, drainEndMs - clock.monotonicMs()) + FORCED_STOP_MS);
				await Promise.race([drained, Bun.sleep(Math.max(0, drainEndMs - clock.monotonicMs()))]);
				// Who is still here gets an error event and the usage so far.
				openStreams.shutDown();
				await server.stop(true);
				await drained;
				await cleanup.run();
			})();
			return stopping;
		},
	};
}

function addressOf(host: string, port: number | undefined): string {
	return `http://${host.includes(":") ? `[${host}]` : host}:${port}`;
}

function settlementsLate(instanceLease: InstanceLease): string | undefined {
	const ageMs = instanceLease.present()?.view().oldestUnflushedMs ?? 0;
	return ageMs > UNFLUSHED_WARNING_MS
		? `settlements have waited ${Math.round(ageMs / 1000)} s for the database`
		: undefined;
}

/** Sums over the slices of accounts; those of keys mirror them. */
function ledgerTotals(instanceLease: InstanceLease) {
	const view = instanceLease.present()?.view();
	if (!view) return undefined;
	const accounts = view.slices.filter((slice) => slice.budget.startsWith("acc_"));
	const sum = (pick: (slice: (typeof accounts)[number]) => number) =>
		accounts.reduce((total, slice) => total + pick(slice), 0);
	return {
		running: view.running,
		queued: view.queued,
		oldestUnflushedMs: view.oldestUnflushedMs,
		free: sum((slice) => slice.free),
		held: sum((slice) => slice.held),
		unacknowledged: sum((slice) => slice.unacknowledged),
	};
}

async function embeddedUrl(config: Config, log: Log, cleanup: Cleanup): Promise<string> {
	const embedded = await startEmbeddedPostgres({ log }, { dataDir: config.dataDir });
	cleanup.add(() => embedded.stop(), EMBEDDED_STOP_MS_MAX);
	return embedded.url;
}

async function openCatalog(
	config: Config,
	deps: { db: Database; clock: Clock; log: Log },
	cleanup: Cleanup,
): Promise<{ catalog: Catalog; fixedCatalog: FixedCatalog | undefined }> {
	const { clock, log } = deps;
	const tx = deps.db.tx;
	const path = config.configPath;
	if (path === null) {
		const fixedCatalog = createFixedCatalog({ tx, clock, log });
		if (!config.demo) await fixedCatalog.setModels([]);
		return { catalog: fixedCatalog, fixedCatalog };
	}
	const catalog = createCatalog({ tx, clock, log, env: config.env, readFile: () => readFile(path, "utf8") });
	const first = await catalog.reload();
	if (!first.ok) {
		const list = first.problems.map((problem) => `${join(path)}:${problem.line}: ${problem.message}`).join("\n  ");
		throw new Fault("invalid_request", `the catalogue has problems:\n  ${list}`);
	}
	const watch = watchCatalog({ clock, log, reload: () => catalog.reload() }, { path });
	cleanup.add(() => watch.stop());
	return { catalog, fixedCatalog: undefined };
}
