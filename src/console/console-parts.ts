import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { type CardPayments, createCardPayments } from "../billing/card-payments.ts";
import type { Config } from "../config.ts";
import type { Statements } from "../db/statements.ts";
import type { Transactional } from "../db/transactional.ts";
import { createDeployments } from "../deployments/deployments.ts";
import type { Digest } from "../keys/digest.ts";
import type { Reconciler } from "../ledger/reconciler.ts";
import type { OwnBrand } from "./brand/shown-brand.ts";
import { createConsoleClients } from "./console-clients.ts";
import type { ConsoleConfig, ConsoleParts } from "./console-deps.ts";
import type { ConsoleFigures } from "./console-figures.ts";
import type { GatewayClient } from "./gateway-client.ts";
import { createFence } from "./keys/fence-view.ts";
import { createLiveFeed } from "./live/live-feed.ts";
import { createHoldingRights } from "./live/live-rights.ts";
import { createMailer } from "./mail/mailer.ts";
import { webhookSecret } from "./notices/webhook.ts";
import { type Auth, createAuth } from "./sign-in/auth.ts";
import { createVisits } from "./visit.ts";

export interface ConsoleDeps {
	readonly config: ConsoleConfig & Pick<Config, "stripe">;
	readonly brand: OwnBrand;
	readonly databaseUrl: string;
	/** For transactions. */
	readonly tx: Transactional;
	readonly clock: Clock;
	readonly log: Log;
	readonly digest: Digest;
	readonly consoleSecret: string;
	readonly gateways: GatewayClient;
	readonly books: Pick<Reconciler, "run">;
	readonly figures: ConsoleFigures;
	/** Where people reach the service without PUBLIC_URL, for links and cookies; known once somebody listens. */
	readonly listeningAt: () => string;
}

export interface OpenConsoleParts extends ConsoleParts {
	/** A client with time, for the jobs: the first sums of a large database are made of many rows. */
	readonly sums: Statements;
	/** Ends `sums` and `liveness`: statements of theirs that are under way are given up. */
	endWaits(): Promise<unknown>;
	/** Ends the rest: the mail server's connections and the client of the pages. */
	close(): Promise<void>;
}

/** Builds what the pages' routes, the management interface and the jobs share. */
export function createConsoleParts(deps: ConsoleDeps): OpenConsoleParts {
	const { config, brand, tx, clock, log } = deps;
	const { statements, liveness, sums } = createConsoleClients(deps, deps.databaseUrl);
	const origin = () => config.publicUrl ?? deps.listeningAt();
	const mailer = createMailer({ ...deps, statements }, { server: config.mail, demo: config.demo });
	let madeAuth: Auth | undefined;
	const auth = () => {
		madeAuth ??= createAuth(
			{ tx, statements, log, mailer },
			{
				config,
				serviceName: brand.serviceName,
				terms: brand.shown.terms,
				secret: deps.consoleSecret,
				origin: origin(),
				origins: originsOf(config, origin()),
			},
		);
		return madeAuth;
	};
	return {
		statements,
		fence: createFence({ statements, liveness, clock, figures: deps.figures }),
		sums,
		tx,
		books: deps.books,
		figures: deps.figures,
		clock,
		log,
		config,
		brand,
		deployments: createDeployments({ statements, clock }),
		gateways: deps.gateways,
		keyMaker: { statements, digest: deps.digest, serviceName: config.serviceName },
		cards: cardsOf(deps, statements),
		mailer,
		consoleSecret: deps.consoleSecret,
		webhookSecretOf: (salt) => webhookSecret(deps.consoleSecret, salt),
		auth,
		visits: createVisits({ secondFactor: config.production, passwordAgain: !config.demo }),
		live: createLiveFeed({ ...deps, holding: createHoldingRights(statements, { secondFactor: config.production }) }),
		origin,
		endWaits: () => Promise.all([sums.end(), liveness.end()]),
		async close() {
			mailer.stop();
			await statements.end();
		},
	};
}

/** Undefined where card payments are not set up. */
function cardsOf({ config, brand, tx, clock, log }: ConsoleDeps, statements: Statements): CardPayments | undefined {
	if (config.stripe === null) return undefined;
	return createCardPayments({ statements, tx, clock, log }, { ...config.stripe, serviceName: brand.serviceName });
}

/** Without PUBLIC_URL this machine's own names are the same page. */
export function originsOf(config: Pick<Config, "publicUrl">, origin: string): readonly string[] {
	if (config.publicUrl !== null) return [config.publicUrl];
	const { port, protocol } = new URL(origin);
	return [origin, ...["localhost", "127.0.0.1"].map((host) => `${protocol}//${host}${port === "" ? "" : `:${port}`}`)];
}
