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
import type { ConsoleFigures } from "./console-figures.ts";
import type { ConsoleSessions } from "./console-session.ts";
import type { GatewayClient } from "./gateway-client.ts";
import type { WaitForFence } from "./keys/fence-view.ts";
import type { LiveFeed } from "./live/live-feed.ts";
import type { Mailer } from "./mail/mailer.ts";
import type { Auth } from "./sign-in/auth.ts";

/** What routes read of the configuration. */
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

/** What every part of the console works with. */
export interface ConsoleParts {
	/** A client of the console's own: a slow page does not stand in the way of settlements. */
	readonly statements: Statements;
	/** On clients of its own: it waits behind no page. */
	readonly fence: WaitForFence;
	readonly tx: Transactional;
	/** Checks the books, for all that want to know: readiness, metrics and the history. */
	readonly books: Pick<Reconciler, "run">;
	readonly clock: Clock;
	readonly log: Log;
	readonly config: ConsoleConfig;
	/** Under whose name all this is shown. */
	readonly brand: OwnBrand;
	/** What the gateways serve, and how they see their servers. */
	readonly deployments: Deployments;
	readonly gateways: GatewayClient;
	readonly keyMaker: KeyMakerDeps;
	/** Undefined where card payments are not set up. */
	readonly cards: CardPayments | undefined;
	readonly mailer: Mailer;
	/** For what is stored encrypted. */
	readonly consoleSecret: string;
	/** Signs what is sent to a customer's webhook, `whsec_…`, by what is stored of it. */
	readonly webhookSecretOf: (salt: string) => string;
	readonly auth: () => Auth;
	readonly sessions: ConsoleSessions;
	readonly live: LiveFeed;
	readonly figures: ConsoleFigures;
	/** Where people reach the service: scheme, host and port. */
	readonly origin: () => string;
}

/** Those of the parts that one function works with. */
export type Parts<Names extends keyof ConsoleParts> = Pick<ConsoleParts, Names>;
