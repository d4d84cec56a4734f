import { Elysia, t } from "elysia";
import { newId } from "../../base/id.ts";
import { archiveProject, createProject, getProject, listProjects, updateProject } from "../../keys/project-admin.ts";
import { noteOutcome } from "../../ops/audit.ts";
import { claimedOnPage, TOKEN } from "../claimed-on-page.ts";
import type { ConsoleParts } from "../console-deps.ts";
import { type Fence, fenceOf } from "../keys/fence-view.ts";
import { LIMITS, NAME, settingsOf } from "../keys/key-body.ts";
import { makerIn } from "../keys/usable-keys.ts";
import { wideningOf } from "../keys/widening.ts";
import { memberNoted } from "../member-act.ts";
import { ACCOUNT_QUERY, EMPTY_BODY, PAGE_QUERY, pageOf } from "../page-query.ts";
import { checkWidening } from "../sign-in/sensitive-acts.ts";
import { projectMemberRoutes } from "./project-member-routes.ts";
import type { ProjectView } from "./project-view.ts";
import { checkWorksIn, heldByProject, projectView } from "./project-view.ts";

const query = t.Object(ACCOUNT_QUERY);

/** Projects of the visited account: made, listed, changed and archived; a developer's are those that he works in. */
export function projectRoutes(parts: ConsoleParts) {
	const { statements, visits } = parts;
	const noted = memberNoted(parts);

	async function view(request: Request, id: string): Promise<ProjectView> {
		const allowed = visits.account(request);
		const { accountId } = allowed;
		await checkWorksIn(statements, id, makerIn(allowed));
		const [project, held] = await Promise.all([
			getProject(statements, { id, accountId }),
			heldByProject(statements, accountId),
		]);
		return projectView(project, held.get(id));
	}

	return new Elysia({ name: "console-projects", prefix: "/projects" })
		.use(projectMemberRoutes(parts))
		.get(
			"/",
			async ({ request, query }): Promise<{ items: ProjectView[]; next: string | null }> => {
				const allowed = visits.account(request);
				const { accountId } = allowed;
				const { shown, after } = pageOf(query);
				const [page, held] = await Promise.all([
					listProjects(statements, accountId, { limit: shown, after }, makerIn(allowed)),
					heldByProject(statements, accountId),
				]);
				return { items: page.items.map((project) => projectView(project, held.get(project.id))), next: page.next };
			},
			{ query: t.Object(PAGE_QUERY) },
		)
		.get("/:id", ({ request, params }) => view(request, params.id), { query })
		.post(
			"/",
			async ({ request, body }): Promise<ProjectView> => {
				const allowed = visits.account(request);
				const { token, ...asked } = body;
				const settings = { ...settingsOf(asked), name: asked.name };
				const id = await claimedOnPage(parts, allowed, { fresh: newId("proj"), token, asked });
				const act = noted(request, "project.create", asked);
				await createProject(statements, allowed.accountId, settings, id, act);
				return view(request, id);
			},
			{ query, body: t.Object({ name: NAME, ...LIMITS, token: TOKEN }) },
		)
		.patch(
			"/:id",
			async ({ request, params, body }): Promise<{ project: ProjectView; fence: Fence }> => {
				const { accountId } = visits.account(request);
				const changes = settingsOf(body);
				const before = await getProject(statements, { id: params.id, accountId });
				if (changes.capNanoUsd !== undefined || changes.capPeriod !== undefined)
					await checkWidening(parts, request, wideningOf(before, changes));
				const act = noted(request, "project.update", { ...body });
				const entry = await updateProject(statements, { id: params.id, accountId }, changes, null, act);
				const fence = await fenceOf(parts, visits.of(request).connection, entry);
				return { project: await view(request, params.id), fence };
			},
			{ query, body: t.Object({ name: t.Optional(NAME), ...LIMITS }) },
		)
		.post(
			"/:id/archive",
			async ({ request, params }): Promise<{ project: ProjectView; fence: Fence }> => {
				const { accountId } = visits.account(request);
				const act = noted(request, "project.archive");
				const entry = await archiveProject(statements, { id: params.id, accountId }, null, act);
				const fence = await fenceOf(parts, visits.of(request).connection, entry);
				await noteOutcome(statements, act, fence);
				return { project: await view(request, params.id), fence };
			},
			{ query, body: EMPTY_BODY },
		);
}
