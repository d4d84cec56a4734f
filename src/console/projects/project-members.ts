import { type Statements, toView } from "../../db/statements.ts";
import { type AuditNote, auditNotesJson } from "../../ops/audit.ts";
import { ConsoleError } from "../console-error.ts";
import { keysMadeBy } from "../members/member-keys.ts";

export interface ProjectMemberView {
	readonly userId: string;
	readonly name: string;
	readonly email: string;
	readonly joinedAtMs: number;
}

export async function listProjectMembers(statements: Statements, projectId: string): Promise<ProjectMemberView[]> {
	const rows = await statements<object>`
		select m.user_id, u.name, u.email, m.joined_at from project_member m join console_user u on u.id = m.user_id
		where m.project_id = ${projectId} order by m.joined_at, u.id`;
	return rows.map(toView<ProjectMemberView>);
}

/** Adds a member of the account to the project. Idempotent. Fault not_found. */
export async function addProjectMember(
	statements: Statements,
	{ projectId, accountId, userId }: { projectId: string; accountId: string; userId: string },
	act?: AuditNote,
): Promise<void> {
	const [row] = await statements<{ known: boolean }>`
		with added as (
			insert into project_member (project_id, user_id, account_id)
			select p.id, m.user_id, m.account_id from project p join member m on m.account_id = p.account_id
			where p.id = ${projectId} and p.account_id = ${accountId} and m.user_id = ${userId}
			on conflict do nothing
		)
		select true as known, audit_note(${auditNotesJson(act)}::text::jsonb, ${projectId}, ${accountId})
		where exists (select 1 from member m where m.account_id = ${accountId} and m.user_id = ${userId})`;
	if (row?.known !== true) throw new ConsoleError("not_found", "There is no such member.");
}

export async function memberByEmail(statements: Statements, accountId: string, email: string): Promise<string | null> {
	const [row] = await statements<{ id: string }>`
		select u.id from console_user u join member m on m.user_id = u.id
		where m.account_id = ${accountId} and u.email = ${email.trim().toLowerCase()}`;
	return row?.id ?? null;
}

/**
 * Removes a member from the project; the caller then revokes the member's keys in it (`revokeKeysMadeBy`). With
 * `revoke` a retry after an interruption succeeds too. Faults: `conflict` if the member has keys in the project and
 * `revoke` is missing; `not_found`.
 */
export async function removeFromProject(
	statements: Statements,
	{ projectId, accountId, userId }: { projectId: string; accountId: string; userId: string },
	keys: "keep" | "revoke" | undefined,
	act?: AuditNote,
): Promise<void> {
	const made = await keysMadeBy(statements, accountId, userId, projectId);
	if (made.length > 0 && keys === undefined)
		throw new ConsoleError(
			"conflict",
			"This member created keys of the project that are still active. Set `keys` to `keep` or `revoke`.",
			{ param: "keys" },
		);
	const [row] = await statements<{ known: boolean }>`
		with gone as (
			delete from project_member
			where project_id = ${projectId} and user_id = ${userId} and account_id = ${accountId} returning user_id
		)
		select true as known, audit_note(${auditNotesJson(act)}::text::jsonb, ${projectId}, ${accountId})
		where ${made.length > 0}::boolean or exists (select 1 from gone) or (${keys === "revoke"}::boolean
			and exists (select 1 from member m where m.account_id = ${accountId} and m.user_id = ${userId}))`;
	if (row?.known !== true) throw new ConsoleError("not_found", "There is no such member.");
}
