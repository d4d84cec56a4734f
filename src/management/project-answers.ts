import { Fault } from "../base/fault.ts";
import { newId } from "../base/id.ts";
import { isoOrNull } from "../base/iso-date.ts";
import type { ConsoleParts } from "../console/console-deps.ts";
import { fenceOf } from "../console/keys/fence-view.ts";
import { checkSettings } from "../keys/key-settings.ts";
import type { ProjectRecord } from "../keys/project-admin.ts";
import { archiveProject, createProject, getProject, listProjects, updateProject } from "../keys/project-admin.ts";
import { noteOutcome } from "../ops/audit.ts";
import { accountOf } from "./account-answers.ts";
import { claimed } from "./claimed.ts";
import { limitsOf, limitsView } from "./limits.ts";
import type { ManagementAnswer, ManagementCall } from "./management-call.ts";
import { bodyOf, detailOf, inForceOf, listOf, notedAct, pageOf } from "./management-call.ts";

/** Projects of any account: the same limits, fences and audit entries as the console's. */
export function projectAnswers(parts: ConsoleParts) {
	const { statements } = parts;

	return {
		async listProjects(call: ManagementCall): Promise<ManagementAnswer> {
			const { shown, after } = pageOf(call);
			const { id } = await accountOf(statements, call.id);
			const { items, next } = await listProjects(statements, id, { limit: shown, after });
			return listOf(items.map(projectView), next);
		},
		readProject: async (call: ManagementCall) => projectView(await getProject(statements, { id: call.id })),
		async createProject(call: ManagementCall): Promise<ManagementAnswer> {
			const { name, client_token: _, ...given } = bodyOf(call, "ManagementProjectCreate");
			const settings = { ...limitsOf(given), name };
			checkSettings(settings);
			const { id: accountId } = call;
			const planned = await claimed(parts, call, newId("proj"));
			const act = notedAct(call, "project.create", detailOf(call));
			const { id } = await createProject(statements, accountId, settings, planned, act);
			return projectView(await getProject(statements, { id }));
		},
		async updateProject(call: ManagementCall): Promise<ManagementAnswer> {
			const { name, ...given } = bodyOf(call, "ManagementProjectUpdate");
			const changes = { ...limitsOf(given), ...(name === undefined ? {} : { name }) };
			if (Object.keys(changes).length === 0) throw new Fault("invalid_request", "Nothing to change was given.");
			const act = notedAct(call, "project.update", detailOf(call));
			const { id, ...entry } = await updateProject(statements, { id: call.id }, changes, call.match, act);
			const fence = await fenceOf(parts, call.connection, entry);
			return { ...projectView(await getProject(statements, { id })), in_force: inForceOf(fence) };
		},
		async archiveProject(call: ManagementCall): Promise<ManagementAnswer> {
			const act = notedAct(call, "project.archive");
			const { id, ...entry } = await archiveProject(statements, { id: call.id }, null, act);
			const fence = await fenceOf(parts, call.connection, entry);
			await noteOutcome(statements, act, fence);
			return { ...projectView(await getProject(statements, { id })), in_force: inForceOf(fence) };
		},
	};
}

function projectView(project: ProjectRecord): ManagementAnswer {
	return {
		object: "project",
		id: project.id,
		account_id: project.accountId,
		name: project.name,
		state: project.state,
		...limitsView(project),
		keys: project.keys,
		created_at: isoOrNull(project.createdAtMs),
		archived_at: isoOrNull(project.archivedAtMs),
		etag: project.etag,
	};
}
