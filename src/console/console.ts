import type { Cleanup } from "../base/cleanup.ts";
import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { createCardPayments } from "../billing/card-payments.ts";
import type { Config } from "../config.ts";
import { LIVENESS_CONNECTION_LIFE_MS } from "../db/database.ts";
import { createServerHistory } from "../db/server-history.ts";
import { createStatements, type StatementsOptions } from "../db/statements.ts";
import { createTransactional } from "../db/transactional.ts";
import { createDeployments } from "../deployments/deployments.ts";
import type { Connection } from "../gateway/connection.ts";
import { createDigest } from "../keys/secret.ts";
import { createBooksHistory, createReconciler, reconcile } from "../ledger/reconciler.ts";
import type { HealthReport } from "../ops/health.ts";
import { countOpenFindings, PAYMENTS_DIFFER } from "../ops/payment-findings.ts";
import type { Secrets } from "../secrets.ts";
import type { OwnBrand } from "./brand/shown-brand.ts";
import { createConsoleApi } from "./console-api.ts";
import type { ConsoleParts, Parts } from "./console-deps.ts";
import { createConsoleFigures } from "./console-figures.ts";
import { createConsoleLimiter } from "./console-limiter.ts";
import { consoleOrigins, createConsoleRouter } from "./console-router.ts";
import { createConsoleSessions } from "./console-session.ts";
import type { GatewayClient } from "./gateway-client.ts";
import { createFence } from "./keys/fence-view.ts";
import { createLiveFeed, createLiveRights } from "./live/live-feed.ts";
import { createMailer } from "./mail/mailer.ts";
import { webhookSecret } from "./notices/webhook.ts";
import { type Auth, createAuth } from "./sign-in/auth.ts";

export interface ConsoleDeps {
	readonly brand: OwnBrand;
	readonly databaseUrl: string;
	readonly clock: Clock;
	readonly log: Log;
	readonly secrets: Pick<Secrets, "keyPepper" | "consoleSecret">;
	readonly gateways: GatewayClient;
	/** Origin for links and cookies when PUBLIC_URL is unset; known only once the listener has a port. */
	readonly listeningAt: () => string;
	readonly cleanup: Cleanup;
}

const SECOND_MS = 1_000;
const MINUTE_MS = 60_000;

export function createConsole(config: Config, deps: ConsoleDeps) {
	const { brand, clock, log, cleanup } = deps;
	const { keyPepper, consoleSecret } = deps.secrets;
	const { statements, liveness, sums, books, tx } = openClients(deps, config);
	const origin = () => config.publicUrl ?? deps.listeningAt();
	const figures = createConsoleFigures();
	const reconciler = createReconciler({
		check: () => reconcile(books),
		history: createBooksHistory(books),
		clock,
		log,
	});
	cleanup.add(() => reconciler.stop());
	const mailer = createMailer({ statements, clock, log, figures }, { server: config.mail, demo: config.demo });
	cleanup.add(() => mailer.stop());
	const limiter = createConsoleLimiter({ clock });
	let madeAuth: Auth | undefined;
	const auth = () => {
		madeAuth ??= createAuth(
			{ tx, statements, log, mailer, limiter },
			{
				...{ config, serviceName: brand.serviceName, terms: brand.shown.terms, secret: consoleSecret },
				...{ origin: origin(), origins: consoleOrigins(config, origin()) },
			},
		);
		return madeAuth;
	};
	const live = createLiveFeed({ ...deps, holding: createLiveRights(statements, { secondFactor: config.production }) });
	cleanup.add(() => live.stop());
	const parts: ConsoleParts = {
		...{ statements, tx, figures, clock, log, config, brand, mailer, consoleSecret, auth, live, origin, limiter },
		books: reconciler,
		fence: createFence({ statements, liveness, clock, figures }),
		deployments: createDeployments({ statements, clock }),
		gateways: deps.gateways,
		keyMaker: { statements, digest: createDigest(keyPepper), serviceName: config.serviceName },
		cards:
			config.stripe === null
				? undefined
				: createCardPayments({ statements, tx, clock, log }, { ...config.stripe, serviceName: brand.serviceName }),
		webhookSecretOf: (salt) => webhookSecret(consoleSecret, salt),
		sessions: createConsoleSessions({ secondFactor: config.production, passwordAgain: !config.demo }),
	};
	const api = createConsoleApi(parts);
	return {
		parts,
		/** Database client with a long deadline for background jobs: the first sums of a large database read many rows. */
		sums,
		router: (connectionOf: (request: Request) => Connection) =>
			createConsoleRouter(parts, { api, connectionOf, webhook: parts.cards?.webhook }),
		health: () => healthOf(parts),
	};
}

/** Opens three groups of database clients: for pages, for fences, and for sums and checks that take minutes. */
function openClients({ clock, log, databaseUrl: url, cleanup }: ConsoleDeps, { dataDir }: Pick<Config, "dataDir">) {
	const history = createServerHistory({ log }, dataDir);
	const open = (applicationName: string, options: Omit<StatementsOptions, "url" | "applicationName">) => {
		const client = createStatements({ clock, log }, { url, applicationName, history, ...options });
		cleanup.add(() => client.end());
		return client;
	};
	const transactional = createTransactional(
		{ clock, log },
		{
			url,
			applicationName: "tollgate console tx",
			history,
			statementDeadlineMs: 10 * SECOND_MS,
			transactionDeadlineMs: 30 * SECOND_MS,
		},
	);
	cleanup.add(() => transactional.end());
	return {
		tx: transactional.tx,
		books: open("tollgate books", { connectionsMax: 1, statementDeadlineMs: 10 * MINUTE_MS }),
		statements: open("tollgate console", { connectionsMax: 4, statementDeadlineMs: 10 * SECOND_MS }),
		liveness: open("tollgate console liveness", {
			connectionsMax: 2,
			statementDeadlineMs: 2 * SECOND_MS,
			lifeMs: LIVENESS_CONNECTION_LIFE_MS,
		}),
		sums: open("tollgate sums", {
			connectionsMax: 1,
			statementDeadlineMs: 10 * MINUTE_MS,
			// Long, because a briefly locked row must not discard minutes of work, and no caller waits.
			lockTimeoutMs: MINUTE_MS,
		}),
	};
}

async function healthOf({ deployments, statements }: Parts<"deployments" | "statements">): Promise<HealthReport> {
	try {
		const warnings = (await deployments.current()).gateways === 0 ? ["no gateway is live: no model can be asked"] : [];
		if ((await countOpenFindings(statements)) > 0) warnings.push(PAYMENTS_DIFFER);
		return { ready: true, reasons: [], warnings };
	} catch {
		return { ready: false, reasons: ["the database does not answer"], warnings: [] };
	}
}
