import { centsOf, coveringCents } from "../../money/cents.ts";
import { NANO_PER_USD, type NanoUsd, nanoUsd, subUsd } from "../../money/nano-usd.ts";
import type { Parts } from "../console-deps.ts";
import { countWithin, uncount } from "../rate-counter.ts";

/**
 * Changes require the password within the last quarter of an hour, except on these routes, each with its reason. A new
 * route requires it unless it is listed here. Routes that the console's router serves itself, a chat of the playground
 * and the start of a batch, spend no more than a small key could.
 */
export const WITHOUT_PASSWORD: Readonly<Record<string, string>> = {
	"POST /reauthenticate": "here it is given",
	"POST /terms": "an agreement, asked for right after signing in",
	"DELETE /sessions/:id": "ends a right",
	"POST /sessions/revoke-others": "ends rights",
	"PUT /language": "in which language one reads and is written to",
	"PATCH /account": "a name, and when days begin",
	"DELETE /invitations/:id": "takes a right back",
	"POST /invitations/accept": "a right of one's own that an owner gave with the password",
	"PUT /alert": "a mail to the account's own people",
	"PUT /credit/billing-details": "what stands on receipts",
	"POST /keys/": "by what the key may spend",
	"PATCH /keys/:id": "by what the key may spend",
	"POST /keys/:id/revoke": "ends a right, and must be quick",
	"POST /projects/": "spends nothing without a key",
	"PATCH /projects/:id": "by what its keys may spend",
	"POST /projects/:id/archive": "ends rights, and must be quick",
	"DELETE /projects/:id/members/:userId": "takes a right back",
	"POST /credit/top-ups/transfer": "pays in",
	"POST /credit/top-ups/card": "pays in",
	"POST /credit/top-ups/:id/cancel": "what is pending can be asked for anew",
	"DELETE /credit/auto-top-up": "ends spending",
	"POST /credit/auto-top-up/finish": "pays in, on a page of its own",
	"DELETE /credit/card": "ends a right",
	"POST /batches/:id/cancel": "stops spending; what is answered is kept",
	"PUT /batch-notices/": "by whether another address is told",
	"POST /batch-notices/:id/replay": "tells again what was told",
	"POST /operator/reconciliation": "reads",
	"POST /operator/management-keys/:id/revoke": "ends a right, and must be quick",
};

const PREFIX = "/api/console";

/** Called before the body is parsed. Faults session_required, reauthentication_required. */
export function checkSensitive({ sessions }: Parts<"sessions">, request: Request, route: string): void {
	if (request.method === "GET" || request.method === "HEAD") return;
	if (WITHOUT_PASSWORD[`${request.method} ${route.slice(PREFIX.length)}`] === undefined)
		sessions.authenticatedLately(request);
}

/** Total spending by keys that a session may create or widen in a day without a recent password. */
const UNASKED_NANO_USD = nanoUsd(100 * NANO_PER_USD);
const UNASKED_WINDOW_MS = 24 * 3_600_000;

/**
 * Checks a key's new limit: it may spend `before` and shall spend up to `cap`, null for no cap. Counted in cents, in
 * advance, so that concurrent requests stay within the limit. Fault reauthentication_required.
 */
export async function checkWidening(
	{ statements, sessions }: Parts<"statements" | "sessions">,
	request: Request,
	{ before, cap }: { before: NanoUsd | null; cap: NanoUsd | null },
): Promise<void> {
	if (before === null || (cap !== null && cap <= before) || sessions.isAuthenticatedLately(request)) return;
	if (cap === null || cap > UNASKED_NANO_USD) throw sessions.passwordWanted();
	const { viewer, accountId } = sessions.account(request);
	const subject = `${viewer.userId} ${accountId}`;
	const cents = coveringCents(subUsd(cap, before));
	const { count } = await countWithin(statements, "cents unasked", subject, UNASKED_WINDOW_MS, cents);
	if (count <= centsOf(UNASKED_NANO_USD)) return;
	await uncount(statements, "cents unasked", subject, cents);
	throw sessions.passwordWanted();
}
