import { t } from "elysia";
import { claimSubject } from "../keys/management-claim.ts";
import type { Parts } from "./console-deps.ts";
import type { Viewer } from "./viewer.ts";

/** Of one attempt of a page's: an answer can be lost on its way, and whoever sends it again is told what was made. */
export const TOKEN = t.Optional(t.String({ pattern: "^[0-9A-Za-z-]{16,64}$" }));

/** Who makes something, and for which account; an operator makes some for none. */
export interface PageMaker {
	readonly viewer: Pick<Viewer, "userId">;
	readonly accountId?: string;
}

/**
 * The id under which a page makes what it asks for: `fresh`, unless the same was asked for with the same token within the
 * day. Then whoever makes it under this id makes no second one. Fault idempotency_mismatch.
 */
export async function claimedOnPage(
	{ keyMaker, clock }: Parts<"keyMaker" | "clock">,
	{ viewer, accountId = "" }: PageMaker,
	{ fresh, token, asked }: { fresh: string; token: string | undefined; asked: object },
): Promise<string> {
	if (token === undefined) return fresh;
	const [kind = ""] = fresh.split("_");
	const request = JSON.stringify([kind, Object.entries(asked).sort()]);
	const by = `page ${accountId} ${viewer.userId} ${kind}`;
	return claimSubject(keyMaker, { by, token, request, subject: fresh, nowMs: clock.wallMs() });
}
