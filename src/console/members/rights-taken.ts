import { t } from "elysia";
import type { Parts } from "../console-deps.ts";
import type { Allowed } from "../console-session.ts";
import type { Fence } from "../keys/fence-view.ts";
import { revokeKeysMadeBy } from "./member-keys.ts";

/** What to do with the keys whose secrets the member has seen. */
export const KEYS_OF_MEMBER = t.Optional(t.Union([t.Literal("keep"), t.Literal("revoke")]));

/** What became of the keys whose secrets a person without the right has seen. */
export interface RightsTaken {
	readonly revoked: readonly string[];
	readonly fence: Fence | null;
}

export const KEYS_KEPT: RightsTaken = { revoked: [], fence: null };

/** Revokes the keys that a person made, in one project or all; each revocation is in the audit log. */
export async function endKeysMadeBy(
	{ statements, fence }: Parts<"statements" | "fence">,
	member: Allowed,
	{ userId, projectId }: { userId: string; projectId?: string },
): Promise<RightsTaken> {
	const act = () => member.noted("key.revoke", { madeBy: userId });
	const { ids, entry } = await revokeKeysMadeBy(statements, member.accountId, userId, projectId ?? null, act);
	return { revoked: ids, fence: entry && (await fence(member, entry)) };
}
