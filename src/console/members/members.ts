import type { Fault } from "../../base/fault.ts";
import type { Statements } from "../../db/statements.ts";
import { viewOf } from "../../db/view-of.ts";
import { type Noted, notedJson } from "../../ops/audit.ts";
import { ConsoleError } from "../console-error.ts";
import { pageOfRows } from "../page-query.ts";
import { may, type Role, rolesJson } from "./roles.ts";

/** Longest page of a list of people. */
const PAGE_MEMBERS = 500;

export interface MemberView {
	readonly userId: string;
	readonly name: string;
	readonly email: string;
	readonly role: Role;
	readonly joinedAtMs: number;
}

/** `next` is the cursor of the next page; joins and removals do not shift it. */
export async function listMembers(
	statements: Statements,
	accountId: string,
	after: string | null = null,
): Promise<{ items: MemberView[]; next: string | null }> {
	const rows = await statements<object>`
		select m.user_id, u.name, u.email, m.role, m.joined_at from member m join console_user u on u.id = m.user_id
		where m.account_id = ${accountId} and (${after}::text is null or m.user_id > ${after}::text)
		order by m.user_id limit ${PAGE_MEMBERS + 1}`;
	return pageOfRows(rows.map(viewOf<MemberView>), PAGE_MEMBERS, ({ userId }) => userId);
}

/** A present or former member: an interrupted removal is completed. Fault not_found. */
export async function checkMember(statements: Statements, accountId: string, userId: string): Promise<void> {
	const [row] = await statements`
		select 1 where exists (select 1 from member where account_id = ${accountId} and user_id = ${userId})
			or exists (select 1 from audit_event where subject = ${userId} and account_id = ${accountId} and action = 'member.remove')`;
	if (row === undefined) throw new ConsoleError("not_found", "There is no such member.");
}

/**
 * Changes a member's role; null removes the member. Invitations that the new role may not give are withdrawn. The
 * statement itself checks the acting member's right, so a right lost a moment ago changes nothing. Faults: not_found;
 * forbidden; conflict for the last owner.
 */
export async function changeMember(
	statements: Statements,
	accountId: string,
	{ userId, by, role }: { userId: string; by: string; role: Role | null },
	act?: Noted,
): Promise<void> {
	const keepsInviting = role !== null && may(role, "members.manage");
	const keepsOwners = role !== null && may(role, "owners.manage");
	const overOwners = rolesJson("owners.manage");
	const overOthers = rolesJson("members.manage");
	// Owners are locked first and in order, so that two owners cannot remove each other concurrently.
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
			(select audit_note(${notedJson(act)}::text::jsonb, ${userId}, ${accountId}) from may) from seen`;
	if (row === undefined || row.role === null) throw new ConsoleError("not_found", "There is no such member.");
	if (row.done) return;
	if (!row.allowed) throw ownersOnly();
	throw new ConsoleError("conflict", "An account keeps at least one owner.");
}

export const ownersOnly = (): Fault =>
	new ConsoleError("forbidden", "Owners are made, changed and removed by owners alone.");
