import { t } from "elysia";
import type { ConsoleParts } from "../console-deps.ts";
import { type Fence, fenceOf } from "../keys/fence-view.ts";
import { memberAct } from "../member-act.ts";
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
	const { ids, entry } = await revokeKeysMadeBy(statements, visits.account(request).accountId, userId, projectId);
	const act = memberAct(parts);
	for (const id of ids) await act(request, "key.revoke", id, { madeBy: userId });
	return { revoked: ids, fence: entry && (await fenceOf(parts, visits.of(request).connection, entry)) };
}
