import { createCleanup } from "../base/cleanup.ts";
import type { Clock } from "../base/clock.ts";
import { systemClock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Config } from "../config.ts";
import type { OwnBrand } from "../console/brand/shown-brand.ts";
import { createConsole } from "../console/console.ts";
import type { ConsoleFigures } from "../console/console-figures.ts";
import { createConsoleFigures } from "../console/console-figures.ts";
import { createConsoleParts } from "../console/console-parts.ts";
import type { GatewayClient } from "../console/gateway-client.ts";
import { createWebhookSender } from "../console/notices/webhook.ts";
import { createPages } from "../console/pages/pages.ts";
import { createStatements } from "../db/statements.ts";
import { createTransactional } from "../db/transactional.ts";
import { type Connection, IDLE_TIMEOUT_S } from "../gateway/connection.ts";
import { notFound } from "../gateway/routes.ts";
import { type JobOptions, startJobs } from "../jobs/jobs.ts";
import { createDigest } from "../keys/digest.ts";
import { createBooksHistory } from "../ledger/books-history.ts";
import { reconcile } from "../ledger/reconcile.ts";
import { createReconciler } from "../ledger/reconciler.ts";
import { createManagement } from "../management/management.ts";
import { MANAGEMENT_PREFIX } from "../management/management-routes.ts";
import type { HealthReport } from "../ops/health.ts";
import type { Secrets } from "../secrets.ts";

/** Run from its source, a service bundles its pages when the first one is asked for: seconds, and more on a busy machine. */
const BUNDLE_S = 90;

/** What serves people and runs the jobs: pages, sign-in, payments, mail, sums, checks of the books. Admits nothing. */
export interface ConsolePlane {
	handle(connection: Connection): Promise<Response>;
	/** For `/readyz`: whether the database answers; warns where no gateway is live. */
	health(): Promise<HealthReport>;
	/** What it counts, for metrics. */
	readonly figures: ConsoleFigures;
	/** Ends what would otherwise stay open for minutes. */
	shutDown(): void;
	/** Stops what it started. Harmless when repeated. */
	stop(): Promise<void>;
}

export interface ConsolePlaneDeps {
	readonly log: Log;
	readonly brand: OwnBrand;
	readonly clock?: Clock;
	readonly jobs?: JobOptions | undefined;
	readonly databaseUrl: string;
	readonly secrets: Pick<Secrets, "keyPepper" | "consoleSecret" | "instanceId">;
	readonly gateways: GatewayClient;
	/** Where people reach the service without PUBLIC_URL. */
	readonly listeningAt: () => string;
}

const TX_DEADLINE_MS = 10_000;
const BOOKS_DEADLINE_MS = 10 * 60_000;

export function createConsolePlane(config: Config, deps: ConsolePlaneDeps): ConsolePlane {
	const { log, brand, databaseUrl, secrets } = deps;
	const clock = deps.clock ?? systemClock;
	const cleanup = createCleanup({ clock: systemClock, log });
	const transactional = createTransactional(
		{ clock, log },
		{
			url: databaseUrl,
			applicationName: "tollgate console tx",
			statementDeadlineMs: TX_DEADLINE_MS,
			transactionDeadlineMs: 3 * TX_DEADLINE_MS,
		},
	);
	cleanup.add(() => transactional.end());
	// The checks read every budget: on a connection of their own, with time.
	const books = createStatements(
		{ clock, log },
		{
			url: databaseUrl,
			connectionsMax: 1,
			statementDeadlineMs: BOOKS_DEADLINE_MS,
			applicationName: "tollgate books",
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
	const figures = createConsoleFigures();
	const parts = createConsoleParts({
		figures,
		config,
		brand,
		databaseUrl,
		tx: transactional.tx,
		clock,
		log,
		digest: createDigest(secrets.keyPepper),
		consoleSecret: secrets.consoleSecret,
		gateways: deps.gateways,
		books: reconciler,
		listeningAt: deps.listeningAt,
	});
	cleanup.add(() => parts.close());
	const jobs = startJobs(
		{
			...parts,
			sendWebhook: createWebhookSender(config),
			serviceName: brand.serviceName,
			retention: config.retention,
		},
		deps.jobs,
	);
	// Together: sums that are made for the first time would keep the others waiting.
	cleanup.add(() => Promise.all([jobs.stop(), parts.endWaits()]));
	cleanup.add(() => parts.live.stop());
	const people = createConsole(parts);
	const management = createManagement(parts);
	const pages = createPages({ log, brand }, { isHttps: () => config.publicUrl?.startsWith("https://") ?? false });

	let stopping: Promise<void> | undefined;
	return {
		async handle(connection) {
			const { request } = connection;
			const { pathname } = new URL(request.url);
			if (pathname.startsWith(MANAGEMENT_PREFIX)) return management(connection);
			if (pathname.startsWith("/api/")) return people.handle(connection);
			connection.setIdleTimeout(BUNDLE_S);
			try {
				return (await pages.respond(request)) ?? notFound(request);
			} finally {
				connection.setIdleTimeout(IDLE_TIMEOUT_S);
			}
		},
		health: () => people.health(),
		figures,
		shutDown: () => people.shutDown(),
		stop() {
			stopping ??= cleanup.run();
			return stopping;
		},
	};
}
