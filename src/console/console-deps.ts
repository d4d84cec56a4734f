import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { CardPayments } from "../billing/card-payments.ts";
import type { Config } from "../config.ts";
import type { Statements } from "../db/statements.ts";
import type { Transactional } from "../db/transactional.ts";
import type { Deployments } from "../deployments/deployments.ts";
import type { KeyMakerDeps } from "../keys/key-admin.ts";
import type { Reconciler } from "../ledger/reconciler.ts";
import type { OwnBrand } from "./brand/shown-brand.ts";
import type { ConsoleDoor } from "./console-door.ts";
import type { ConsoleFigures } from "./console-figures.ts";
import type { ConsoleSessions } from "./console-session.ts";
import type { GatewayClient } from "./gateway-client.ts";
import type { WaitForFence } from "./keys/fence-view.ts";
import type { LiveFeed } from "./live/live-feed.ts";
import type { Mailer } from "./mail/mailer.ts";
import type { Auth } from "./sign-in/auth.ts";

export type ConsoleConfig = Pick<
	Config,
	| "demo"
	| "mail"
	| "production"
	| "publicUrl"
	| "retention"
	| "serviceName"
	| "signIn"
	| "topUpSecondLook"
	| "transferDetails"
>;

export interface ConsoleParts {
	/** The console has its own database client, so that slow pages do not delay settlements. */
	readonly statements: Statements;
	/** Uses its own database clients, so that waiting for a fence is not delayed by the queries of pages. */
	readonly fence: WaitForFence;
	readonly tx: Transactional;
	readonly books: Pick<Reconciler, "run">;
	readonly clock: Clock;
	readonly door: ConsoleDoor;
	readonly log: Log;
	readonly config: ConsoleConfig;
	readonly brand: OwnBrand;
	readonly deployments: Deployments;
	readonly gateways: GatewayClient;
	readonly keyMaker: KeyMakerDeps;
	/** Undefined if card payments are not configured. */
	readonly cards: CardPayments | undefined;
	readonly mailer: Mailer;
	readonly consoleSecret: string;
	/** Derives a webhook's signing secret, `whsec_…`, from the salt in the database. */
	readonly webhookSecretOf: (salt: string) => string;
	readonly auth: () => Auth;
	readonly sessions: ConsoleSessions;
	readonly live: LiveFeed;
	readonly figures: ConsoleFigures;
	readonly origin: () => string;
}

export type Parts<Names extends keyof ConsoleParts> = Pick<ConsoleParts, Names>;
