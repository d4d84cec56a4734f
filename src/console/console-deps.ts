import { Elysia, t } from "elysia";
import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { CardPayments } from "../billing/card-payments.ts";
import type { Config } from "../config.ts";
import type { Statements } from "../db/statements.ts";
import type { Transactional } from "../db/transactional.ts";
import type { Deployments } from "../deployments/deployments.ts";
import type { KeyMakerDeps } from "../keys/key-admin.ts";
import type { Reconciler } from "../ledger/reconciler.ts";
import { type NanoUsd, nanoUsd, parseUsd } from "../money/nano-usd.ts";
import type { OwnBrand } from "./brand/shown-brand.ts";
import { ConsoleError } from "./console-error.ts";
import type { ConsoleFigures } from "./console-figures.ts";
import type { ConsoleLimiter } from "./console-limiter.ts";
import type { ConsoleSessions } from "./console-session.ts";
import type { GatewayClient } from "./gateway-client.ts";
import type { WaitForFence } from "./keys/fence-view.ts";
import type { LiveFeed } from "./live/live-feed.ts";
import type { Mailer } from "./mail/mailer.ts";
import type { Auth } from "./sign-in/auth.ts";

export interface ConsoleParts {
	/** The console has its own database client, so that slow pages do not delay settlements. */
	readonly statements: Statements;
	/** Uses its own database clients, so that waiting for a fence is not delayed by the queries of pages. */
	readonly fence: WaitForFence;
	readonly tx: Transactional;
	readonly books: Pick<Reconciler, "run">;
	readonly clock: Clock;
	readonly limiter: ConsoleLimiter;
	readonly log: Log;
	readonly config: Config;
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

/** Query of routes about one account. Declared for the types; the console's router reads the parameter. */
export const ACCOUNT_QUERY = {
	schema: "standalone",
	query: t.Object({ account: t.Optional(t.String({ maxLength: 64 })) }),
} as const;

export const PAGE_QUERY = {
	after: t.Optional(t.String({ maxLength: 128 })),
	limit: t.Optional(t.Numeric({ minimum: 1, maximum: 200, multipleOf: 1 })),
};

export const USD_FIELD = t.String({ minLength: 1, maxLength: 32 });
export const REASON_FIELD = t.String({ minLength: 3, maxLength: 500 });

/** Parses decimal dollars; a minus sign only with `signed`. Fault `invalid_request`, naming `param`. */
export function parseAmount(text: string, param: string, signed = false): NanoUsd {
	const negative = signed && text.startsWith("-");
	const amount = parseUsd(negative ? text.slice(1) : text);
	if (amount === undefined)
		throw new ConsoleError("invalid_request", "Enter an amount in US dollars, such as 25.00.", { param });
	return negative ? nanoUsd(-amount) : amount;
}

export function accountRoutes<const Prefix extends string = "">(
	{ sessions }: Parts<"sessions">,
	name: string,
	prefix?: Prefix,
) {
	return new Elysia<Prefix>({ name, prefix: prefix as Prefix })
		.guard(ACCOUNT_QUERY)
		.resolve(({ request }) => ({ member: sessions.account(request) }));
}
