import { Fault } from "../base/fault.ts";
import { newId } from "../base/id.ts";
import type { Parts } from "../console/console-deps.ts";
import { revokeKeysMadeBy } from "../console/members/member-keys.ts";
import {
	addProjectMember,
	listProjectMembers,
	memberByEmail,
	type ProjectMemberView,
	removeFromProject,
} from "../console/projects/project-members.ts";
import { checkKeySettings } from "../keys/key-settings.ts";
import type { ProjectRecord } from "../keys/project-admin.ts";
import { archiveProject, createProject, getProject, listProjects, updateProject } from "../keys/project-admin.ts";
import { getAccount } from "./account-answers.ts";
import { toAnswer } from "./management-answer.ts";
import type { ManagementAnswer, ManagementCall } from "./management-call.ts";
import { auditDetail, claimId, keySettings, listJson, readPage, toFence, withFence } from "./management-call.ts";
import { MANAGEMENT_ANSWERS } from "./management-schemas.ts";

/** Operations on any account's projects, with the limits, fences and audit entries of the console. */
export function projectAnswers(parts: Parts<"statements" | "keyMaker" | "clock" | "fence">) {
	const { statements } = parts;

	return {
		async listProjects(call: ManagementCall): Promise<ManagementAnswer> {
			const { id } = await getAccount(statements, call.id);
			const { items, next } = await listProjects(statements, id, readPage(call));
			return listJson(items.map(projectView), next);
		},
		readProject: async (call: ManagementCall) => projectView(await getProject(statements, { id: call.id })),
		async createProject(call: ManagementCall<"createProject">): Promise<ManagementAnswer> {
			const { name, client_token: _, ...given } = call.body;
			const settings = { ...keySettings(given), name };
			checkKeySettings(settings);
			const { id: accountId } = call;
			const planned = await claimId(parts, call, newId("proj"));
			const act = call.noted("project.create", auditDetail(call));
			const { id } = await createProject(statements, accountId, settings, planned, act);
			return projectView(await getProject(statements, { id }));
		},
		async updateProject(call: ManagementCall<"updateProject">): Promise<ManagementAnswer> {
			const { name, ...given } = call.body;
			const changes = { ...keySettings(given), ...(name === undefined ? {} : { name }) };
			if (Object.keys(changes).length === 0) throw new Fault("invalid_request", "The body has no field to change.");
			const act = call.noted("project.update", auditDetail(call));
			const { id, ...entry } = await updateProject(statements, { id: call.id }, changes, call.match, act);
			return withFence(parts, call, { entry }, async () => projectView(await getProject(statements, { id })));
		},
		async archiveProject(call: ManagementCall): Promise<ManagementAnswer> {
			const act = call.noted("project.archive");
			const { id, ...entry } = await archiveProject(statements, { id: call.id }, null, act);
			return withFence(parts, call, { entry, act }, async () => projectView(await getProject(statements, { id })));
		},
	};
}

const projectView = (project: ProjectRecord) =>
	toAnswer(MANAGEMENT_ANSWERS.ManagementProject, project, {
		models: project.models.length === 0 ? null : [...project.models],
		concurrency: project.concurrencyMax,
	});

export function projectMemberAnswers(parts: Parts<"statements" | "fence">) {
	const { statements } = parts;

	/** Returns the member and the project that a call names. Faults `not_found`, `invalid_request`. */
	async function placeOf(call: ManagementCall, { user_id, email }: { user_id?: string; email?: string }) {
		if ((user_id === undefined) === (email === undefined))
			throw new Fault("invalid_request", "Send either `user_id` or `email`.", { param: "user_id" });
		const { id: projectId, accountId } = await getProject(statements, { id: call.id });
		const userId = user_id ?? (await memberByEmail(statements, accountId, email ?? ""));
		if (userId === null) throw new Fault("not_found", "There is no such member.", { param: "email" });
		return { projectId, accountId, userId };
	}

	return {
		async listProjectMembers(call: ManagementCall): Promise<ManagementAnswer> {
			const { id } = await getProject(statements, { id: call.id });
			const members = await listProjectMembers(statements, id);
			const views = members.map((member) => memberView(id, member));
			return listJson(views, null);
		},
		async addProjectMember(call: ManagementCall<"addProjectMember">): Promise<ManagementAnswer> {
			const place = await placeOf(call, call.body);
			const { projectId, userId } = place;
			await addProjectMember(statements, place, call.noted("project.member_add", { userId }));
			const member = (await listProjectMembers(statements, projectId)).find((one) => one.userId === userId);
			if (member === undefined)
				throw new Fault("conflict", "This member was removed from the project at the same time.");
			return memberView(projectId, member);
		},
		async removeProjectMember(call: ManagementCall<"removeProjectMember">): Promise<ManagementAnswer> {
			const { keys, ...person } = call.body;
			const place = await placeOf(call, person);
			const { projectId, accountId, userId } = place;
			const removal = call.noted("project.member_remove", { userId, keys: keys ?? "none" });
			await removeFromProject(statements, place, keys, removal);
			const act = () => call.noted("key.revoke", { madeBy: userId });
			const ended = keys === "revoke" ? await revokeKeysMadeBy(statements, accountId, userId, projectId, act) : null;
			const fence = ended?.entry && (await parts.fence(call, ended.entry));
			return {
				object: "project_member",
				project_id: projectId,
				user_id: userId,
				removed: true,
				revoked_keys: ended?.ids ?? [],
				in_force: fence ? toFence(fence) : null,
			};
		},
	};
}

const memberView = (projectId: string, member: ProjectMemberView) =>
	toAnswer(MANAGEMENT_ANSWERS.ManagementProjectMember, member, { project_id: projectId });
