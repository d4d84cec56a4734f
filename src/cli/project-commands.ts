import { Fault } from "../base/fault.ts";
import { isoOrNull } from "../base/iso-date.ts";
import { revokeKeysMadeBy } from "../console/members/member-keys.ts";
import type { ProjectMemberView } from "../console/projects/project-members.ts";
import {
	addProjectMember,
	listProjectMembers,
	memberByEmail,
	removeFromProject,
} from "../console/projects/project-members.ts";
import type { Statements } from "../db/statements.ts";
import { getAccount } from "../keys/account-admin.ts";
import type { ProjectRecord } from "../keys/project-admin.ts";
import { archiveProject, createProject, getProject, listProjects, updateProject } from "../keys/project-admin.ts";
import { jsonFields } from "../money/json-fields.ts";
import { type CommandRuns, UsageError } from "./command.ts";
import { actAndFence, fenceOutput } from "./fence-output.ts";
import { capText, limitsJson, modelsText, parseChanges, parseLimits, parsePage } from "./setting-options.ts";
import { listOutput } from "./table.ts";

export const projectCommands: CommandRuns = {
	async "project create"({ withDatabase }, input) {
		const settings = { ...parseLimits(input), name: input.required("name") };
		const { id } = await withDatabase(({ statements }) =>
			createProject(statements, input.required("account"), settings),
		);
		return { json: { id }, text: `created project ${id}` };
	},
	async "project list"({ withDatabase }, input) {
		const page = await withDatabase(async ({ statements }) => {
			const { id } = await getAccount(statements, input.required("account"));
			return listProjects(statements, id, parsePage(input));
		});
		return listOutput(page, projectJson, ["ID", "NAME", "STATE", "KEYS", "SPENT", "CAP", "MODELS"], {
			CAP: capText,
			MODELS: modelsText,
		});
	},
	async "project update"(context, input) {
		const changes = parseChanges(input, parseLimits(input));
		return actAndFence(context, input, (statements, id) => updateProject(statements, { id }, changes));
	},
	"project archive": (context, input) =>
		actAndFence(context, input, (statements, id) => archiveProject(statements, { id })),
	async "project member list"({ withDatabase }, input) {
		const members = await withDatabase(async ({ statements }) => {
			const { id } = await getProject(statements, { id: input.argument(0) });
			return listProjectMembers(statements, id);
		});
		return listOutput({ items: members, next: null }, memberJson, ["ID", "NAME", "EMAIL", "JOINED"]);
	},
	async "project member add"({ withDatabase }, input) {
		const { projectId, userId } = await withDatabase(async ({ statements }) => {
			const place = await placeOf(statements, input.argument(0), input.argument(1));
			await addProjectMember(statements, place);
			return place;
		});
		return { json: { id: projectId, user: userId }, text: `${userId} is a member of ${projectId}` };
	},
	async "project member remove"({ withDatabase }, input) {
		const keys = input.option("keys");
		if (keys !== undefined && keys !== "keep" && keys !== "revoke")
			throw new UsageError("--keys must be keep or revoke");
		return withDatabase(async ({ statements, liveness }) => {
			const place = await placeOf(statements, input.argument(0), input.argument(1));
			const { projectId, accountId, userId } = place;
			await removeFromProject(statements, place, keys);
			const { ids, entry } =
				keys === "revoke" ? await revokeKeysMadeBy(statements, accountId, userId, projectId) : { ids: [], entry: null };
			const about = { id: projectId, user: userId, revoked: ids };
			if (entry !== null) return fenceOutput({ liveness }, about, entry, input);
			return { json: about, text: `${userId} is no longer a member of ${projectId}` };
		});
	},
};

/** Finds a member of the account by user id or mail address (`who`). Fault `not_found`. */
async function placeOf(statements: Statements, projectId: string, who: string) {
	const { accountId } = await getProject(statements, { id: projectId });
	const userId = who.includes("@") ? await memberByEmail(statements, accountId, who) : who;
	if (userId === null) throw new Fault("not_found", `The account has no member ${who}.`);
	return { projectId, accountId, userId };
}

function memberJson({ userId, name, email, joinedAtMs }: ProjectMemberView): Record<string, unknown> {
	return { id: userId, name, email, joined_at: isoOrNull(joinedAtMs) };
}

const projectJson = (project: ProjectRecord) => ({
	id: project.id,
	account: project.accountId,
	...jsonFields("name state keys", project),
	...limitsJson(project),
	...jsonFields("created_at archived_at", project),
});
