import { t } from "elysia";
import { claimCreatedId } from "../keys/management-claim.ts";
import type { Parts } from "./console-deps.ts";
import type { Viewer } from "./viewer.ts";

/** A page's token for one change: if the response is lost, a retry with the same token gets the same result. */
export const TOKEN_FIELD = t.Optional(t.String({ pattern: "^[0-9A-Za-z-]{16,64}$" }));

/**
 * Returns the id for an object that a page creates: `fresh`, or the id of a request with the same token and body within
 * the last day. Fault `idempotency_mismatch` if the bodies differ.
 */
export async function claimIdOnPage(
	{ keyMaker, clock }: Parts<"keyMaker" | "clock">,
	{ viewer, accountId = "" }: { readonly viewer: Pick<Viewer, "userId">; readonly accountId?: string },
	{ fresh, token, asked }: { fresh: string; token: string | undefined; asked: object },
): Promise<string> {
	if (token === undefined) return fresh;
	const [kind = ""] = fresh.split("_");
	const request = JSON.stringify([kind, Object.entries(asked).sort()]);
	const by = `page ${accountId} ${viewer.userId} ${kind}`;
	return claimCreatedId(keyMaker, { by, token, request, subject: fresh, nowMs: clock.wallMs() });
}
