import { Elysia, t } from "elysia";
import { Fault } from "../../base/fault.ts";
import type { Parts } from "../console-deps.ts";
import { ConsoleError } from "../console-error.ts";
import type { Allowed } from "../console-session.ts";
import type { Fence } from "../keys/fence-view.ts";
import { ACCOUNT_QUERY, PAGE_QUERY } from "../page-query.ts";
import { type InvitationView, listInvitations } from "./invitations.ts";
import { keysMadeBy, type MemberKey, revokeKeysMadeBy, roleOf } from "./member-keys.ts";
import { changeMember, checkMember, listMembers, type MemberView, ownersOnly } from "./members.ts";
import { may, ROLES, type Role } from "./roles.ts";

/** What to do with the keys whose secrets the member has seen. */
export const KEYS_OF_MEMBER = t.Optional(t.Union([t.Literal("keep"), t.Literal("revoke")]));

/** What became of the keys whose secrets a person without the right has seen. */
export interface RightsTaken {
	readonly revoked: readonly string[];
	readonly fence: Fence | null;
}

export const KEYS_KEPT: RightsTaken = { revoked: [], fence: null };

const query = t.Object(ACCOUNT_QUERY);
const ROLE = t.UnionEnum(ROLES);
const memberQuery = t.Object({ ...ACCOUNT_QUERY, keys: KEYS_OF_MEMBER });

/** Members of the visited account. */
export function membersRoutes(parts: Parts<"statements" | "fence" | "sessions">) {
	const { statements, sessions } = parts;

	return new Elysia({ name: "console-members" })
		.resolve(({ request }) => ({ member: sessions.account(request) }))
		.get(
			"/members",
			async ({
				member: { accountId },
				query,
			}): Promise<{ items: MemberView[]; next: string | null; invitations: InvitationView[] }> => {
				const [page, invitations] = await Promise.all([
					listMembers(statements, accountId, query.after ?? null),
					listInvitations(statements, accountId),
				]);
				return { ...page, invitations };
			},
			{ query: t.Object({ ...ACCOUNT_QUERY, after: PAGE_QUERY.after }) },
		)
		.get(
			"/members/:userId/keys",
			async ({ member: { accountId }, params }): Promise<{ items: MemberKey[] }> => {
				await checkMember(statements, accountId, params.userId);
				return { items: await keysMadeBy(statements, accountId, params.userId) };
			},
			{ query },
		)
		.patch(
			"/members/:userId",
			async ({ member, params, query, body }): Promise<RightsTaken & { role: Role }> => {
				const taken = await change(parts, member, { userId: params.userId, role: body.role, choice: query.keys });
				return { role: body.role, ...taken };
			},
			{ query: memberQuery, body: t.Object({ role: ROLE }) },
		)
		.delete(
			"/members/:userId",
			async ({ member, params, query }): Promise<RightsTaken & { removed: true }> => {
				const taken = await change(parts, member, { userId: params.userId, role: null, choice: query.keys });
				return { removed: true, ...taken };
			},
			{ query: memberQuery },
		);
}

/**
 * The only way to reduce a member's rights: another role, or null to remove the member. If the member may use no keys
 * any more, `choice` decides about the active ones. Faults: not_found, forbidden, conflict.
 */
async function change(
	parts: Parts<"statements" | "fence">,
	member: Allowed,
	{ userId, role, choice }: { userId: string; role: Role | null; choice: "keep" | "revoke" | undefined },
): Promise<RightsTaken> {
	const { statements } = parts;
	const { accountId, viewer, role: own, noted } = member;
	await checkMember(statements, accountId, userId);
	const before = await roleOf(statements, accountId, userId);
	if (!may(own, "owners.manage") && (before === "owner" || role === "owner")) throw ownersOnly();
	const keepsKeys = role !== null && may(role, "keys.change");
	const keys = keepsKeys ? [] : await keysMadeBy(statements, accountId, userId);
	if (keys.length > 0 && choice === undefined)
		throw new ConsoleError("conflict", "This member made keys that still work: say whether they are kept or revoked.", {
			param: "keys",
		});
	const done = keepsKeys ? "kept" : (choice ?? "none");
	const act = role === null ? noted("member.remove", { keys: done }) : noted("member.role", { role, keys: done });
	await changeMember(statements, accountId, { userId, by: viewer.userId, role }, act).catch((error: unknown) => {
		// An earlier removal was interrupted before the keys were revoked.
		const isOver = error instanceof Fault && error.code === "not_found" && keys.length > 0;
		if (role !== null || !isOver) throw error;
	});
	return keepsKeys || choice !== "revoke" ? KEYS_KEPT : endKeysMadeBy(parts, member, { userId });
}

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
