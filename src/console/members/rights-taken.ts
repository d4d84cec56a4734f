import { t } from "elysia";
import type { Parts } from "../console-deps.ts";
import type { Allowed } from "../console-session.ts";
import type { Fence } from "../keys/fence-view.ts";
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
	{ statements, fence }: Parts<"statements" | "fence">,
	member: Allowed,
	{ userId, projectId }: { userId: string; projectId?: string },
): Promise<RightsTaken> {
	const act = () => member.noted("key.revoke", { madeBy: userId });
	const { ids, entry } = await revokeKeysMadeBy(statements, member.accountId, userId, projectId ?? null, act);
	return { revoked: ids, fence: entry && (await fence(member, entry)) };
}
