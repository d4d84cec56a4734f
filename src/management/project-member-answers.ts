import { Fault } from "../base/fault.ts";
import type { Parts } from "../console/console-deps.ts";
import { revokeKeysMadeBy } from "../console/members/member-keys.ts";
import type { ProjectMemberView } from "../console/projects/project-members.ts";
import {
	addProjectMember,
	listProjectMembers,
	memberByEmail,
	takeOutOfProject,
} from "../console/projects/project-members.ts";
import { getProject } from "../keys/project-admin.ts";
import { inForceOf, listOf, type ManagementAnswer, type ManagementCall } from "./management-call.ts";
import { MANAGEMENT_ANSWERS } from "./management-schemas.ts";
import { shown } from "./shown.ts";

/** Members of a project of any account. */
export function projectMemberAnswers(parts: Parts<"statements" | "fence">) {
	const { statements } = parts;

	/** The member and project of a call. Faults: not_found, invalid_request. */
	async function placeOf(call: ManagementCall, { user_id, email }: { user_id?: string; email?: string }) {
		if ((user_id === undefined) === (email === undefined))
			throw new Fault("invalid_request", "Say who by `user_id` or by `email`, one of them.", { param: "user_id" });
		const { id: projectId, accountId } = await getProject(statements, { id: call.id });
		const userId = user_id ?? (await memberByEmail(statements, accountId, email ?? ""));
		if (userId === null) throw new Fault("not_found", "There is no such member.", { param: "email" });
		return { projectId, accountId, userId };
	}

	return {
		async listProjectMembers(call: ManagementCall): Promise<ManagementAnswer> {
			const { id } = await getProject(statements, { id: call.id });
			const members = await listProjectMembers(statements, id);
			return listOf(
				members.map((member) => memberView(id, member)),
				null,
			);
		},
		async addProjectMember(call: ManagementCall<"addProjectMember">): Promise<ManagementAnswer> {
			const place = await placeOf(call, call.body);
			const { projectId, userId } = place;
			await addProjectMember(statements, place, call.noted("project.member_add", { userId }));
			const member = (await listProjectMembers(statements, projectId)).find((one) => one.userId === userId);
			if (member === undefined) throw new Fault("conflict", "Somebody took this person out of the project meanwhile.");
			return memberView(projectId, member);
		},
		async removeProjectMember(call: ManagementCall<"removeProjectMember">): Promise<ManagementAnswer> {
			const { keys, ...person } = call.body;
			const place = await placeOf(call, person);
			const { projectId, accountId, userId } = place;
			const removal = call.noted("project.member_remove", { userId, keys: keys ?? "none" });
			await takeOutOfProject(statements, place, keys, removal);
			const act = () => call.noted("key.revoke", { madeBy: userId });
			const ended = keys === "revoke" ? await revokeKeysMadeBy(statements, accountId, userId, projectId, act) : null;
			const fence = ended?.entry && (await parts.fence(call, ended.entry));
			return {
				object: "project_member",
				project_id: projectId,
				user_id: userId,
				removed: true,
				revoked_keys: ended?.ids ?? [],
				in_force: fence ? inForceOf(fence) : null,
			};
		},
	};
}

const memberView = (projectId: string, member: ProjectMemberView) =>
	shown(MANAGEMENT_ANSWERS.ManagementProjectMember, member, { project_id: projectId });
