import { t } from "elysia";
import { newId } from "../../base/id.ts";
import type { Statements } from "../../db/statements.ts";
import {
	archiveProject,
	createProject,
	getProject,
	listProjects,
	type ProjectRecord,
	updateProject,
} from "../../keys/project-admin.ts";
import { addUsd, type NanoUsd, ZERO_USD } from "../../money/nano-usd.ts";
import { accountRoutes, PAGE_QUERY, type Parts } from "../console-deps.ts";
import { ConsoleError } from "../console-error.ts";
import type { PermittedMember } from "../console-session.ts";
import { checkCapRaise } from "../keys/cap-raise.ts";
import type { Fence } from "../keys/fence-view.ts";
import { LIMIT_SETTINGS, makerFilter, NAME_FIELD, parseKeyBody } from "../keys/key-routes.ts";
import { readHeldCredit } from "../keys/key-view.ts";
import { KEYS_FIELD, type KeyRevocation, NO_KEY_REVOCATION, revokeKeysAndFence } from "../members/members.ts";
import { claimIdOnPage, TOKEN_FIELD } from "../page-claim.ts";
import { addProjectMember, listProjectMembers, type ProjectMemberView, removeFromProject } from "./project-members.ts";

type ProjectView = ReturnType<typeof projectView>;

export function projectRoutes(parts: Parts<"statements" | "fence" | "clock" | "keyMaker" | "sessions">) {
	const { statements } = parts;

	async function view(member: PermittedMember, id: string): Promise<ProjectView> {
		const { accountId } = member;
		await checkWorksIn(statements, id, makerFilter(member));
		const [project, held] = await Promise.all([
			getProject(statements, { id, accountId }),
			readHeldCredit("project", statements, accountId),
		]);
		return projectView(project, held.get(id)?.nanoUsd);
	}

	return accountRoutes(parts, "console-projects", "/projects")
		.use(projectMemberRoutes(parts))
		.get(
			"/",
			async ({ member, query }): Promise<{ items: ProjectView[]; next: string | null }> => {
				const { accountId } = member;
				const [page, held] = await Promise.all([
					listProjects(statements, accountId, query, makerFilter(member)),
					readHeldCredit("project", statements, accountId),
				]);
				return {
					items: page.items.map((project) => projectView(project, held.get(project.id)?.nanoUsd)),
					next: page.next,
				};
			},
			{ query: t.Object(PAGE_QUERY) },
		)
		.get("/:id", ({ member, params }) => view(member, params.id))
		.post(
			"/",
			async ({ member, body }): Promise<ProjectView> => {
				const { token, ...asked } = body;
				const settings = { ...parseKeyBody(asked), name: asked.name };
				const id = await claimIdOnPage(parts, member, { fresh: newId("proj"), token, asked });
				await createProject(statements, member.accountId, settings, id, member.noted("project.create", asked));
				return view(member, id);
			},
			{ body: t.Object({ name: NAME_FIELD, ...LIMIT_SETTINGS, token: TOKEN_FIELD }) },
		)
		.patch(
			"/:id",
			async ({ member, request, params, body }): Promise<{ project: ProjectView; fence: Fence }> => {
				const { accountId } = member;
				const changes = parseKeyBody(body);
				await checkCapRaise(parts, request, await getProject(statements, { id: params.id, accountId }), changes);
				const act = member.noted("project.update", { ...body });
				const entry = await updateProject(statements, { id: params.id, accountId }, changes, null, act);
				const fence = await parts.fence(member, entry);
				return { project: await view(member, params.id), fence };
			},
			{ body: t.Object({ name: t.Optional(NAME_FIELD), ...LIMIT_SETTINGS }) },
		)
		.post("/:id/archive", async ({ member, params }): Promise<{ project: ProjectView; fence: Fence }> => {
			const { accountId } = member;
			const act = member.noted("project.archive");
			const entry = await archiveProject(statements, { id: params.id, accountId }, null, act);
			const fence = await parts.fence(member, entry, act);
			return { project: await view(member, params.id), fence };
		});
}

function projectMemberRoutes(parts: Parts<"statements" | "fence" | "sessions">) {
	const { statements } = parts;

	return accountRoutes(parts, "console-project-members")
		.get("/:id/members", async ({ member, params }): Promise<{ items: ProjectMemberView[] }> => {
			await checkWorksIn(statements, params.id, makerFilter(member));
			await getProject(statements, { id: params.id, accountId: member.accountId });
			return { items: await listProjectMembers(statements, params.id) };
		})
		.put("/:id/members/:userId", async ({ member: { accountId, noted }, params }): Promise<{ added: true }> => {
			const { id: projectId, userId } = params;
			await getProject(statements, { id: projectId, accountId });
			await addProjectMember(statements, { projectId, accountId, userId }, noted("project.member_add", { userId }));
			return { added: true };
		})
		.delete(
			"/:id/members/:userId",
			async ({ member, params, query }): Promise<KeyRevocation & { removed: true }> => {
				const { accountId } = member;
				const { id: projectId, userId } = params;
				await getProject(statements, { id: projectId, accountId });
				const act = member.noted("project.member_remove", { userId, keys: query.keys ?? "none" });
				await removeFromProject(statements, { projectId, accountId, userId }, query.keys, act);
				const taken =
					query.keys === "revoke" ? await revokeKeysAndFence(parts, member, { userId, projectId }) : NO_KEY_REVOCATION;
				return { removed: true, ...taken };
			},
			{ query: t.Object({ keys: KEYS_FIELD }) },
		);
}

/** Held credit: of requests that were running at the last flush to Postgres, and of dead instances. */
export function projectView(project: ProjectRecord, heldNanoUsd: NanoUsd = ZERO_USD) {
	const { accountId: _, etag: __, models, absentNanoUsd, ...shown } = project;
	return { ...shown, models: [...models], heldNanoUsd: addUsd(heldNanoUsd, absentNanoUsd) };
}

/** Throws Fault `not_found` unless the person is a member of the project. A `personId` of null allows all projects. */
async function checkWorksIn(statements: Statements, projectId: string, personId: string | null): Promise<void> {
	if (personId === null) return;
	const [row] = await statements`
		select 1 from project_member where project_id = ${projectId} and user_id = ${personId}`;
	if (row === undefined)
		throw new ConsoleError("not_found", "There is no project {id}.", { values: { id: projectId } });
}
