import { t } from "elysia";
import { Fault } from "../../base/fault.ts";
import { toPage } from "../../db/page.ts";
import { type Statements, toView } from "../../db/statements.ts";
import { type AuditNote, auditNotesJson } from "../../ops/audit.ts";
import { accountRoutes, PAGE_QUERY, type Parts } from "../console-deps.ts";
import { ConsoleError } from "../console-error.ts";
import type { PermittedMember } from "../console-session.ts";
import type { Fence } from "../keys/fence-view.ts";
import { listInvitations, ownersOnly } from "./invitations.ts";
import { keysMadeBy, type MemberKey, readRole, revokeKeysMadeBy } from "./member-keys.ts";
import { ROLES, type Role, roleHasRight, rolesJson } from "./roles.ts";

const PAGE_MEMBERS = 500;

export interface MemberView {
	readonly userId: string;
	readonly name: string;
	readonly email: string;
	readonly role: Role;
	readonly joinedAtMs: number;
}

export async function listMembers(statements: Statements, accountId: string, after: string | null = null) {
	const rows = await statements<object>`
		select m.user_id, u.name, u.email, m.role, m.joined_at from member m join console_user u on u.id = m.user_id
		where m.account_id = ${accountId} and (${after}::text is null or m.user_id > ${after}::text)
		order by m.user_id limit ${PAGE_MEMBERS + 1}`;
	return toPage(rows.map(toView<MemberView>), PAGE_MEMBERS, ({ userId }) => userId);
}

/** Accepts present and former members, so that an interrupted removal can be completed. Fault not_found. */
async function checkMember(statements: Statements, accountId: string, userId: string): Promise<void> {
	const [row] = await statements`
		select 1 where exists (select 1 from member where account_id = ${accountId} and user_id = ${userId})
			or exists (select 1 from audit_event where subject = ${userId} and account_id = ${accountId} and action = 'member.remove')`;
	if (row === undefined) throw new ConsoleError("not_found", "There is no such member.");
}

/**
 * Sets a member's role; null removes the member. Withdraws the member's invitations if the new role may not invite. The
 * statement itself checks the acting member's right. Faults `not_found`, `forbidden`; `conflict` for the last owner.
 */
export async function changeMember(
	statements: Statements,
	accountId: string,
	{ userId, by, role }: { userId: string; by: string; role: Role | null },
	act?: AuditNote,
): Promise<void> {
	const keepsInviting = role !== null && roleHasRight(role, "members.manage");
	const keepsOwners = role !== null && roleHasRight(role, "owners.manage");
	const overOwners = rolesJson("owners.manage");
	const overOthers = rolesJson("members.manage");
	// Locks owners first and in a fixed order, so that two owners cannot remove each other concurrently.
	const [row] = await statements<{ role: Role | null; others: boolean; allowed: boolean; done: boolean }>`
		with people as materialized (
			select user_id, role from member
			where account_id = ${accountId} and (role = 'owner' or user_id = ${by} or user_id = ${userId})
			order by user_id for update
		), seen as materialized (
			select t.role, exists (select 1 from people o where o.role = 'owner' and o.user_id <> ${userId}) as others,
				jsonb_exists(case when t.role = 'owner' or ${role}::text = 'owner' then ${overOwners}::text::jsonb
					else ${overOthers}::text::jsonb end, a.role) as allowed
			from people t left join people a on a.user_id = ${by} where t.user_id = ${userId}
		), may as (
			select 1 from seen where allowed and (role <> 'owner' or ${role}::text = 'owner' or others)
		), gone as (
			delete from member where account_id = ${accountId} and user_id = ${userId} and ${role}::text is null
				and exists (select 1 from may) returning user_id
		), changed as (
			update member set role = ${role}::text where account_id = ${accountId} and user_id = ${userId} and ${role}::text is not null
				and exists (select 1 from may) returning user_id
		), withdrawn as (
			delete from invitation where account_id = ${accountId} and invited_by = ${userId} and exists (select 1 from may)
				and not (${keepsInviting}::boolean and (role <> 'owner' or ${keepsOwners}::boolean)) returning id
		)
		select role, others, coalesce(allowed, false) as allowed,
			exists (select 1 from gone) or exists (select 1 from changed) as done,
			(select audit_note(${auditNotesJson(act)}::text::jsonb, ${userId}, ${accountId}) from may) from seen`;
	if (row === undefined || row.role === null) throw new ConsoleError("not_found", "There is no such member.");
	if (row.done) return;
	if (!row.allowed) throw ownersOnly();
	throw new ConsoleError("conflict", "An account must have at least one owner.");
}

export const KEYS_FIELD = t.Optional(t.Union([t.Literal("keep"), t.Literal("revoke")]));

export interface KeyRevocation {
	readonly revoked: readonly string[];
	readonly fence: Fence | null;
}

export const NO_KEY_REVOCATION: KeyRevocation = { revoked: [], fence: null };

export function membersRoutes(parts: Parts<"statements" | "fence" | "sessions">) {
	const { statements } = parts;

	return accountRoutes(parts, "console-members")
		.get(
			"/members",
			async ({ member: { accountId }, query }) => {
				const [page, invitations] = await Promise.all([
					listMembers(statements, accountId, query.after ?? null),
					listInvitations(statements, accountId),
				]);
				return { ...page, invitations };
			},
			{ query: t.Object({ after: PAGE_QUERY.after }) },
		)
		.get("/members/:userId/keys", async ({ member: { accountId }, params }): Promise<{ items: MemberKey[] }> => {
			await checkMember(statements, accountId, params.userId);
			return { items: await keysMadeBy(statements, accountId, params.userId) };
		})
		.guard({ schema: "standalone", query: t.Object({ keys: KEYS_FIELD }) })
		.patch(
			"/members/:userId",
			async ({ member, params, query, body }): Promise<KeyRevocation & { role: Role }> => {
				const taken = await change(parts, member, { userId: params.userId, role: body.role, choice: query.keys });
				return { role: body.role, ...taken };
			},
			{ body: t.Object({ role: t.UnionEnum(ROLES) }) },
		)
		.delete("/members/:userId", async ({ member, params, query }) => {
			const taken = await change(parts, member, { userId: params.userId, role: null, choice: query.keys });
			return { removed: true as const, ...taken };
		});
}

/**
 * Changes a member's role; null removes the member. Routes that reduce rights must call it. If the member can no longer
 * use keys, `choice` says whether active ones are revoked. Faults `not_found`, `forbidden`, `conflict`.
 */
async function change(
	parts: Parts<"statements" | "fence">,
	member: PermittedMember,
	{ userId, role, choice }: { userId: string; role: Role | null; choice: "keep" | "revoke" | undefined },
): Promise<KeyRevocation> {
	const { statements } = parts;
	const { accountId, viewer, role: own, noted } = member;
	await checkMember(statements, accountId, userId);
	const before = await readRole(statements, accountId, userId);
	if (!roleHasRight(own, "owners.manage") && (before === "owner" || role === "owner")) throw ownersOnly();
	const keepsKeys = role !== null && roleHasRight(role, "keys.change");
	const keys = keepsKeys ? [] : await keysMadeBy(statements, accountId, userId);
	if (keys.length > 0 && choice === undefined)
		throw new ConsoleError(
			"conflict",
			"This member created keys that are still active. Set `keys` to `keep` or `revoke`.",
			{ param: "keys" },
		);
	const done = keepsKeys ? "kept" : (choice ?? "none");
	const act = role === null ? noted("member.remove", { keys: done }) : noted("member.role", { role, keys: done });
	await changeMember(statements, accountId, { userId, by: viewer.userId, role }, act).catch((error: unknown) => {
		// The person is no longer a member but has active keys: an earlier removal stopped before it revoked them.
		const isOver = error instanceof Fault && error.code === "not_found" && keys.length > 0;
		if (role !== null || !isOver) throw error;
	});
	return keepsKeys || choice !== "revoke" ? NO_KEY_REVOCATION : revokeKeysAndFence(parts, member, { userId });
}

export async function revokeKeysAndFence(
	{ statements, fence }: Parts<"statements" | "fence">,
	member: PermittedMember,
	{ userId, projectId }: { userId: string; projectId?: string },
): Promise<KeyRevocation> {
	const act = () => member.noted("key.revoke", { madeBy: userId });
	const { ids, entry } = await revokeKeysMadeBy(statements, member.accountId, userId, projectId ?? null, act);
	return { revoked: ids, fence: entry && (await fence(member, entry)) };
}
