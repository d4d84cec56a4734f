import { Fault } from "../base/fault.ts";
import { newId } from "../base/id.ts";
import type { Parts } from "../console/console-deps.ts";
import { checkSettings } from "../keys/key-settings.ts";
import type { ProjectRecord } from "../keys/project-admin.ts";
import { archiveProject, createProject, getProject, listProjects, updateProject } from "../keys/project-admin.ts";
import { accountOf } from "./account-answers.ts";
import type { ManagementAnswer, ManagementCall } from "./management-call.ts";
import { claimed, detailOf, inForceOf, listOf, pageOf, settingsOf } from "./management-call.ts";
import { MANAGEMENT_ANSWERS } from "./management-schemas.ts";
import { shown } from "./shown.ts";

/** Projects of any account, with the console's limits, fences and audit entries. */
export function projectAnswers(parts: Parts<"statements" | "keyMaker" | "clock" | "fence">) {
	const { statements } = parts;

	return {
		async listProjects(call: ManagementCall): Promise<ManagementAnswer> {
			const { shown, after } = pageOf(call);
			const { id } = await accountOf(statements, call.id);
			const { items, next } = await listProjects(statements, id, { limit: shown, after });
			return listOf(items.map(projectView), next);
		},
		readProject: async (call: ManagementCall) => projectView(await getProject(statements, { id: call.id })),
		async createProject(call: ManagementCall<"createProject">): Promise<ManagementAnswer> {
			const { name, client_token: _, ...given } = call.body;
			const settings = { ...settingsOf(given), name };
			checkSettings(settings);
			const { id: accountId } = call;
			const planned = await claimed(parts, call, newId("proj"));
			const act = call.noted("project.create", detailOf(call));
			const { id } = await createProject(statements, accountId, settings, planned, act);
			return projectView(await getProject(statements, { id }));
		},
		async updateProject(call: ManagementCall<"updateProject">): Promise<ManagementAnswer> {
			const { name, ...given } = call.body;
			const changes = { ...settingsOf(given), ...(name === undefined ? {} : { name }) };
			if (Object.keys(changes).length === 0) throw new Fault("invalid_request", "Nothing to change was given.");
			const act = call.noted("project.update", detailOf(call));
			const { id, ...entry } = await updateProject(statements, { id: call.id }, changes, call.match, act);
			const fence = await parts.fence(call, entry);
			return { ...projectView(await getProject(statements, { id })), in_force: inForceOf(fence) };
		},
		async archiveProject(call: ManagementCall): Promise<ManagementAnswer> {
			const act = call.noted("project.archive");
			const { id, ...entry } = await archiveProject(statements, { id: call.id }, null, act);
			const fence = await parts.fence(call, entry, act);
			return { ...projectView(await getProject(statements, { id })), in_force: inForceOf(fence) };
		},
	};
}

const projectView = (project: ProjectRecord) =>
	shown(MANAGEMENT_ANSWERS.ManagementProject, project, {
		models: project.models.length === 0 ? null : [...project.models],
		concurrency: project.concurrencyMax,
	});
