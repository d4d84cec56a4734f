import type { Statements } from "../../db/statements.ts";
import { Refusal } from "../texts/refusal.ts";

/** Who works in a project. */
export interface ProjectMemberView {
	readonly userId: string;
	readonly name: string;
	readonly email: string;
	readonly joinedAtMs: number;
}

/** In the order in which they joined. */
export async function listProjectMembers(statements: Statements, projectId: string): Promise<ProjectMemberView[]> {
	const rows = await statements<{ id: string; name: string; email: string; joined_at: Date }>`
		select u.id, u.name, u.email, m.joined_at from project_member m join console_user u on u.id = m.user_id
		where m.project_id = ${projectId} order by m.joined_at, u.id`;
	return rows.map(({ id, name, email, joined_at }) => ({
		userId: id,
		name,
		email,
		joinedAtMs: joined_at.getTime(),
	}));
}

/** One of the account's members, from then on of the project too; again changes nothing. Fault not_found. */
export async function addProjectMember(
	statements: Statements,
	{ projectId, accountId, userId }: { projectId: string; accountId: string; userId: string },
): Promise<void> {
	const [row] = await statements<{ known: boolean }>`
		with added as (
			insert into project_member (project_id, user_id, account_id)
			select p.id, m.user_id, m.account_id from project p join member m on m.account_id = p.account_id
			where p.id = ${projectId} and p.account_id = ${accountId} and m.user_id = ${userId}
			on conflict do nothing
		)
		select exists (select 1 from member m where m.account_id = ${accountId} and m.user_id = ${userId}) as known`;
	if (row?.known !== true) throw new Refusal("not_found", "There is no such member.", { param: "userId" });
}

/** Gives whether he was one. */
export async function removeProjectMember(statements: Statements, projectId: string, userId: string): Promise<boolean> {
	const rows = await statements`
		delete from project_member where project_id = ${projectId} and user_id = ${userId} returning user_id`;
	return rows.length > 0;
}
