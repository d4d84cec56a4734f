import { t } from "elysia";
import type { ConsoleParts } from "../console-deps.ts";
import { type Fence, fenceOf } from "../keys/fence-view.ts";
import { memberNoted } from "../member-act.ts";
import { revokeKeysMadeBy } from "./member-keys.ts";

/** What is asked of who takes rights away: what becomes of the keys whose secrets the member has seen. */
export const KEYS_OF_MEMBER = t.Optional(t.Union([t.Literal("keep"), t.Literal("revoke")]));

/** What became of the keys whose secrets somebody has, where he lost the right to them. */
export interface RightsTaken {
	readonly revoked: readonly string[];
	readonly fence: Fence | null;
}

export const KEYS_KEPT: RightsTaken = { revoked: [], fence: null };

/** Revokes the keys that somebody made, in one project or all; each is in the audit log. */
export async function endKeysMadeBy(
	parts: ConsoleParts,
	request: Request,
	{ userId, projectId }: { userId: string; projectId?: string },
): Promise<RightsTaken> {
	const { visits, statements } = parts;
	const { accountId } = visits.account(request);
	const act = () => memberNoted(parts)(request, "key.revoke", { madeBy: userId });
	const { ids, entry } = await revokeKeysMadeBy(statements, accountId, userId, projectId ?? null, act);
	return { revoked: ids, fence: entry && (await fenceOf(parts, visits.of(request).connection, entry)) };
}
