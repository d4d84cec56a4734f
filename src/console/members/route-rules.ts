import { assert } from "../../base/assert.ts";
import type { Parts } from "../console-deps.ts";
import { ConsoleError } from "../console-error.ts";
import type { Right } from "./roles.ts";

/** `person`: for the person's own settings, except in company sessions. `anybody`: in company sessions too. */
type Who = Right | "person" | "anybody" | "operator";

/**
 * The right that each route requires; unlisted routes are refused. A change requires that the password was entered
 * within 15 minutes, unless the row gives a reason for an exception. Playground chats and batch starts are not in this
 * table: they cost no more than a small key may spend.
 */
export const ROUTE_RULES: Readonly<Record<string, Who | readonly [who: Who, withoutPassword: string]>> = {
	"GET /me": "anybody",
	"POST /terms": ["anybody", "an agreement, required right after signing in"],
	"PUT /language": ["anybody", "the language of pages and mails"],
	"POST /reauthenticate": ["person", "the password is given here"],
	"GET /sessions": "person",
	"GET /passkeys": "person",
	"DELETE /passkeys/:id": "person",
	"DELETE /sessions/:id": ["person", "ends a right"],
	"POST /sessions/revoke-others": ["person", "ends rights"],
	"POST /invitations/accept": ["person", "the person's own right, given by an owner with the password"],
	"GET /live": "anybody",
	"GET /company-sign-in/": "sign_in.manage",
	"PUT /company-sign-in/": "sign_in.manage",
	"POST /company-sign-in/verify": "sign_in.manage",
	"DELETE /company-sign-in/": "sign_in.manage",
	"PATCH /account": ["account.change", "a name, and when days begin"],
	"GET /members": "account.see",
	"POST /invitations": "members.manage",
	"DELETE /invitations/:id": ["members.manage", "takes a right back"],
	"GET /members/:userId/keys": "members.manage",
	"PATCH /members/:userId": "members.manage",
	"DELETE /members/:userId": "members.manage",
	"GET /alert": "credit.see",
	"PUT /alert": ["credit.buy", "a mail to the account's own people"],
	"GET /overview": "account.see",
	"GET /keys/": "keys.see",
	"GET /keys/:id": "keys.see",
	"POST /keys/": ["keys.change", "depends on what the key may spend: `checkCapRaise`"],
	"PATCH /keys/:id": ["keys.change", "depends on what the key may spend: `checkCapRaise`"],
	"POST /keys/:id/rotate": "keys.change",
	"POST /keys/:id/revoke": ["keys.change", "ends a right, and must be quick"],
	"GET /projects/": "projects.see",
	"GET /projects/:id": "projects.see",
	"GET /projects/:id/members": "projects.see",
	"POST /projects/": ["projects.change", "spends nothing without a key"],
	"PATCH /projects/:id": ["projects.change", "depends on what its keys may spend: `checkCapRaise`"],
	"POST /projects/:id/archive": ["projects.change", "ends rights, and must be quick"],
	"PUT /projects/:id/members/:userId": "projects.change",
	"DELETE /projects/:id/members/:userId": ["projects.change", "takes a right back"],
	"GET /credit/": "credit.see",
	"GET /credit/running": "credit.see",
	"GET /credit/top-ups": "credit.see",
	"POST /credit/top-ups/transfer": ["credit.buy", "pays in"],
	"POST /credit/top-ups/card": ["credit.buy", "pays in"],
	"POST /credit/top-ups/:id/cancel": ["credit.buy", "a pending top-up can be requested again"],
	"GET /credit/auto-top-up": "credit.see",
	"PUT /credit/auto-top-up": "card.charge",
	"DELETE /credit/auto-top-up": ["card.charge", "ends spending"],
	"POST /credit/auto-top-up/finish": ["credit.buy", "pays in, on a page of Stripe"],
	"POST /credit/card": "card.charge",
	"DELETE /credit/card": ["card.charge", "ends a right"],
	"GET /credit/ledger": "credit.see",
	"GET /credit/receipts/:id": "credit.see",
	"GET /credit/statements": "credit.see",
	"GET /credit/statement.csv": "credit.see",
	"GET /credit/statement": "credit.see",
	"GET /credit/statement.pdf": "credit.see",
	"GET /credit/billing-details": "credit.see",
	"PUT /credit/billing-details": ["billing.change", "text on receipts"],
	"GET /usage": "account.see",
	"GET /usage.csv": "account.see",
	"GET /requests": "account.see",
	"GET /requests.csv": "account.see",
	"GET /requests/:id": "account.see",
	"GET /batches/": "account.see",
	"GET /batches/:id": "account.see",
	"POST /batches/:id/cancel": ["requests.send", "stops spending; finished answers are kept"],
	"GET /batch-notices/": "account.see",
	"PUT /batch-notices/": ["account.change", "requires it itself for a new address"],
	"POST /batch-notices/secret": "account.change",
	"POST /batch-notices/:id/replay": ["account.change", "repeats a notice"],
	"POST /operator/reconciliation": ["operator", "reads"],
	"POST /operator/management-keys/:id/revoke": ["operator", "ends a right, and must be quick"],
};

/** Changes that a suspended account may make: paying in and revoking keys. `sessions.allow` refuses all others. */
export const ROUTES_OF_SUSPENDED: ReadonlySet<string> = new Set([
	"POST /credit/top-ups/transfer",
	"POST /credit/top-ups/card",
	"POST /credit/top-ups/:id/cancel",
	"POST /keys/:id/revoke",
]);

const PREFIX = "/api/console";

/**
 * Checks a request before its body is parsed. Faults `session_required`, `not_found`, `forbidden`, `account_suspended`,
 * `reauthentication_required`, `rate_limit_exceeded`.
 */
export function checkRoute(
	{ sessions, limiter }: Parts<"sessions" | "limiter">,
	request: Request,
	route: string,
): void {
	const path = route.slice(PREFIX.length);
	const isRead = request.method === "GET" || request.method === "HEAD";
	const name = `${isRead ? "GET" : request.method} ${path}`;
	const rule = ROUTE_RULES[name];
	const who = typeof rule === "object" ? rule[0] : rule;
	const { membership, viewer } = sessions.of(request);
	// An operator who views an account sees what its members see, not pages about the operator's own person.
	if (membership?.viewing && (who === undefined || who === "person"))
		throw new ConsoleError("forbidden", "The read-only view of an account does not include this page.");
	if (!/^\/(public|operator)\//.test(path)) {
		assert(who !== undefined && who !== "operator", "the table has the right of every route");
		if (who !== "person" && who !== "anybody") sessions.allow(request, who, ROUTES_OF_SUSPENDED.has(name));
		else if (who === "person" && sessions.viewer(request).company)
			throw new ConsoleError(
				"forbidden",
				"These settings belong to you, not to your company. Sign in without single sign-on to change them.",
			);
	}
	if (isRead) return;
	if (typeof rule !== "object") sessions.authenticatedLately(request);
	limiter.change(membership?.accountId ?? viewer?.userId ?? "");
}
