import { Elysia, t } from "elysia";
import { getProject } from "../../keys/project-admin.ts";
import type { Parts } from "../console-deps.ts";
import { makerIn } from "../keys/usable-keys.ts";
import { endKeysMadeBy, KEYS_KEPT, KEYS_OF_MEMBER, type RightsTaken } from "../members/rights-taken.ts";
import { ACCOUNT_QUERY, EMPTY_BODY } from "../page-query.ts";
import type { ProjectMemberView } from "./project-members.ts";
import { addProjectMember, listProjectMembers, takeOutOfProject } from "./project-members.ts";
import { checkWorksIn } from "./project-view.ts";

const query = t.Object(ACCOUNT_QUERY);

/** Members of a project. */
export function projectMemberRoutes(parts: Parts<"statements" | "fence" | "sessions">) {
	const { statements, sessions } = parts;

	return new Elysia({ name: "console-project-members" })
		.resolve(({ request }) => ({ member: sessions.account(request) }))
		.get(
			"/:id/members",
			async ({ member, params }): Promise<{ items: ProjectMemberView[] }> => {
				await checkWorksIn(statements, params.id, makerIn(member));
				await getProject(statements, { id: params.id, accountId: member.accountId });
				return { items: await listProjectMembers(statements, params.id) };
			},
			{ query },
		)
		.put(
			"/:id/members/:userId",
			async ({ member: { accountId, noted }, params }): Promise<{ added: true }> => {
				const { id: projectId, userId } = params;
				await getProject(statements, { id: projectId, accountId });
				const act = noted("project.member_add", { userId });
				await addProjectMember(statements, { projectId, accountId, userId }, act);
				return { added: true };
			},
			{ query, body: EMPTY_BODY },
		)
		.delete(
			"/:id/members/:userId",
			async ({ member, params, query }): Promise<RightsTaken & { removed: true }> => {
				const { accountId } = member;
				const { id: projectId, userId } = params;
				await getProject(statements, { id: projectId, accountId });
				const act = member.noted("project.member_remove", { userId, keys: query.keys ?? "none" });
				await takeOutOfProject(statements, { projectId, accountId, userId }, query.keys, act);
				const taken = query.keys === "revoke" ? await endKeysMadeBy(parts, member, { userId, projectId }) : KEYS_KEPT;
				return { removed: true, ...taken };
			},
			{ query: t.Object({ ...ACCOUNT_QUERY, keys: KEYS_OF_MEMBER }) },
		);
}
