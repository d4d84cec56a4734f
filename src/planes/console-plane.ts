import { Elysia } from "elysia";
import { assert } from "../base/assert.ts";
import { createCleanup } from "../base/cleanup.ts";
import { type Clock, systemClock } from "../base/clock.ts";
import { newRequestId } from "../base/id.ts";
import { requestLanguage } from "../base/language.ts";
import type { Log } from "../base/log.ts";
import { waitForTurn } from "../base/time-slice.ts";
import type { Config } from "../config.ts";
import type { OwnBrand } from "../console/brand/shown-brand.ts";
import { createConsole } from "../console/console.ts";
import { consoleErrorResponse } from "../console/console-error.ts";
import type { GatewayClient } from "../console/gateway-client.ts";
import { mailKeyOwners } from "../console/keys/key-mail.ts";
import { createWebhookSender } from "../console/notices/webhook.ts";
import { createPages } from "../console/pages/pages.ts";
import { type Connection, IDLE_TIMEOUT_S } from "../gateway/connection.ts";
import { notFoundResponse, uncaughtErrorResponse } from "../gateway/routes.ts";
import { type JobOptions, startJobs } from "../jobs/jobs.ts";
import { addressNetwork } from "../keys/failed-attempts.ts";
import { createManagement } from "../management/management.ts";
import { MANAGEMENT_PREFIX } from "../management/management-routes.ts";
import type { Secrets } from "../secrets.ts";
import { createConsoleRequestLimit } from "./console-request-limit.ts";

/** Timeout in seconds for the first page of a service run from source, which bundles the pages at that request. */
const BUNDLE_S = 90;
/** Assumed CPU time of an ordinary request in ms; clients take turns by it. */
const REQUEST_MS = 1;

export interface ConsolePlaneDeps {
	readonly log: Log;
	readonly brand: OwnBrand;
	readonly clock?: Clock;
	readonly jobs?: JobOptions | undefined;
	readonly databaseUrl: string;
	readonly secrets: Pick<Secrets, "keyPepper" | "consoleSecret" | "instanceId">;
	readonly gateways: GatewayClient;
	/** URL of the service if PUBLIC_URL is not set. */
	readonly listeningAt: () => string;
}

export type ConsolePlane = ReturnType<typeof createConsolePlane>;

/** The console plane: pages, sign-in, payments, mail, sums, jobs. It admits no inference requests. */
export function createConsolePlane(config: Config, deps: ConsolePlaneDeps) {
	const { log, brand } = deps;
	const clock = deps.clock ?? systemClock;
	const cleanup = createCleanup({ clock: systemClock, log });
	const people = createConsole(config, { ...deps, clock, cleanup });
	const { parts, sums } = people;
	const { retention } = config;
	const notices = { ...parts, sendWebhook: createWebhookSender(config), serviceName: brand.serviceName };
	const jobs = startJobs({ ...parts, clients: { ...parts, sums }, retention, notices }, deps.jobs);
	// Stopped at the same time, because a job may wait for the first sums.
	cleanup.add(() => Promise.all([jobs.stop(), sums.end()]));
	const management = createManagement(parts, { mailOwners: (key) => mailKeyOwners(parts, key) });
	const pages = createPages({ log, brand }, { isHttps: () => config.publicUrl?.startsWith("https://") ?? false });

	async function page(connection: Connection): Promise<Response> {
		const { request } = connection;
		connection.setIdleTimeout(BUNDLE_S);
		try {
			return (await pages.respond(request)) ?? notFoundResponse(request);
		} finally {
			connection.setIdleTimeout(IDLE_TIMEOUT_S);
		}
	}

	const connections = new WeakMap<Request, Connection>();
	function connectionOf(request: Request): Connection {
		const connection = connections.get(request);
		assert(connection !== undefined, "each request comes with its connection");
		return connection;
	}
	const requestLimit = createConsoleRequestLimit();
	const bare = { parse: "none" } as const;
	const router = new Elysia({ handler: { standardHostname: false } })
		.onError(({ error, code }) => uncaughtErrorResponse(error, code))
		.all(`${MANAGEMENT_PREFIX}*`, ({ request }) => management(connectionOf(request)), bare)
		.use(people.router(connectionOf))
		.all("/*", ({ request }) => page(connectionOf(request)), bare);

	let stopping: Promise<void> | undefined;
	return {
		async handle(connection: Connection): Promise<Response> {
			const { request } = connection;
			const refused = Promise.withResolvers<never>();
			try {
				const leave = requestLimit.enter(connection, refused.reject);
				connections.set(request, connection);
				await Promise.race([waitForTurn(addressNetwork(connection.address), REQUEST_MS), refused.promise]);
				return await Promise.race([router.handle(request), refused.promise]).finally(leave);
			} catch (error) {
				return consoleErrorResponse(error, newRequestId().requestId, {
					log,
					language: requestLanguage(request.headers),
				});
			}
		},
		/** For `/readyz`: a reason if Postgres does not answer, a warning if no gateway is live. */
		health: () => people.health(),
		metrics: {
			readings: parts.figures.readings(),
			histograms: parts.figures.histograms(),
			lagName: "tollgate_console_event_loop_lag_seconds",
		},
		/** Ends live-update connections, which could otherwise stay open for minutes. */
		shutDown: () => parts.live.stop(),
		stop() {
			stopping ??= cleanup.run();
			return stopping;
		},
	};
}
