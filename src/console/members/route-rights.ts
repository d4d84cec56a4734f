import { assert } from "../../base/assert.ts";
import type { Parts } from "../console-deps.ts";
import { ConsoleError } from "../console-error.ts";
import type { Right } from "./roles.ts";

/**
 * The right that each route requires; an unlisted route is refused. `person`: one's own settings, not for company
 * sessions; `anybody`: for these too. Routes of operators and public ones need no right.
 */
export const ROUTE_RIGHTS: Readonly<Record<string, Right | "person" | "anybody">> = {
	"GET /me": "anybody",
	"POST /terms": "anybody",
	"PUT /language": "anybody",
	"POST /reauthenticate": "person",
	"GET /sessions": "person",
	"GET /passkeys": "person",
	"DELETE /passkeys/:id": "person",
	"DELETE /sessions/:id": "person",
	"POST /sessions/revoke-others": "person",
	"POST /invitations/accept": "person",
	// Operators may have no account.
	"GET /live": "anybody",
	"GET /company-sign-in/": "sign_in.manage",
	"PUT /company-sign-in/": "sign_in.manage",
	"POST /company-sign-in/verify": "sign_in.manage",
	"DELETE /company-sign-in/": "sign_in.manage",
	"PATCH /account": "account.change",
	"GET /members": "account.see",
	"POST /invitations": "members.manage",
	"DELETE /invitations/:id": "members.manage",
	"GET /members/:userId/keys": "members.manage",
	"PATCH /members/:userId": "members.manage",
	"DELETE /members/:userId": "members.manage",
	"GET /alert": "credit.see",
	"PUT /alert": "credit.buy",
	"GET /overview": "account.see",
	"GET /keys/": "keys.see",
	"GET /keys/:id": "keys.see",
	"POST /keys/": "keys.change",
	"PATCH /keys/:id": "keys.change",
	"POST /keys/:id/rotate": "keys.change",
	"POST /keys/:id/revoke": "keys.change",
	"GET /projects/": "projects.see",
	"GET /projects/:id": "projects.see",
	"GET /projects/:id/members": "projects.see",
	"POST /projects/": "projects.change",
	"PATCH /projects/:id": "projects.change",
	"POST /projects/:id/archive": "projects.change",
	"PUT /projects/:id/members/:userId": "projects.change",
	"DELETE /projects/:id/members/:userId": "projects.change",
	"GET /credit/": "credit.see",
	"GET /credit/running": "credit.see",
	"GET /credit/top-ups": "credit.see",
	"POST /credit/top-ups/transfer": "credit.buy",
	"POST /credit/top-ups/card": "credit.buy",
	"POST /credit/top-ups/:id/cancel": "credit.buy",
	"GET /credit/auto-top-up": "credit.see",
	"PUT /credit/auto-top-up": "card.charge",
	"DELETE /credit/auto-top-up": "card.charge",
	"POST /credit/auto-top-up/finish": "credit.buy",
	"POST /credit/card": "card.charge",
	"DELETE /credit/card": "card.charge",
	"GET /credit/ledger": "credit.see",
	"GET /credit/receipts/:id": "credit.see",
	"GET /credit/statements": "credit.see",
	"GET /credit/statement.csv": "credit.see",
	"GET /credit/statement": "credit.see",
	"GET /credit/statement.pdf": "credit.see",
	"GET /credit/billing-details": "credit.see",
	"PUT /credit/billing-details": "billing.change",
	"GET /usage": "account.see",
	"GET /usage.csv": "account.see",
	"GET /requests": "account.see",
	"GET /requests.csv": "account.see",
	"GET /requests/:id": "account.see",
	"GET /batches/": "account.see",
	"GET /batches/:id": "account.see",
	"POST /batches/:id/cancel": "requests.send",
	"GET /batch-notices/": "account.see",
	"PUT /batch-notices/": "account.change",
	"POST /batch-notices/secret": "account.change",
	"POST /batch-notices/:id/replay": "account.change",
};

const PREFIX = "/api/console";

/** Called before the body is parsed. Faults session_required, not_found, forbidden. */
export function checkRight({ sessions }: Parts<"sessions">, request: Request, route: string): void {
	const path = route.slice(PREFIX.length);
	if (path.startsWith("/public/") || path.startsWith("/operator/")) return;
	const right = ROUTE_RIGHTS[`${request.method === "HEAD" ? "GET" : request.method} ${path}`];
	assert(right !== undefined, "every route says in the table what it asks of a role");
	if (right === "anybody") return;
	if (right !== "person") sessions.allow(request, right);
	else if (sessions.viewer(request).company)
		throw new ConsoleError("forbidden", "This is your own, not your company's: sign in without it.");
}
