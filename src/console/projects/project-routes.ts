import { Elysia, t } from "elysia";
import type { CapPeriod } from "../../keys/cap-period.ts";
import { CAP_PERIODS } from "../../keys/cap-period.ts";
import type { ProjectSettings } from "../../keys/project-admin.ts";
import { archiveProject, createProject, getProject, listProjects, updateProject } from "../../keys/project-admin.ts";
import { audit } from "../../ops/audit.ts";
import type { AuditAction } from "../../ops/audit-action.ts";
import type { ConsoleParts } from "../console-deps.ts";
import { type Fence, fenceOf } from "../keys/fence-view.ts";
import { makerIn } from "../keys/usable-keys.ts";
import { wideningOf } from "../keys/widening.ts";
import { revokeKeysMadeBy } from "../members/member-keys.ts";
import { ACCOUNT_QUERY, amountOf, EMPTY_BODY, PAGE_QUERY, pageOf, USD } from "../page-query.ts";
import { checkWidening } from "../sign-in/sensitive-acts.ts";
import type { ProjectMemberView } from "./project-members.ts";
import { addProjectMember, listProjectMembers, takeOutOfProject } from "./project-members.ts";
import type { ProjectView } from "./project-view.ts";
import { checkWorksIn, heldByProject, projectView } from "./project-view.ts";

const settings = {
	capUsd: t.Optional(t.Nullable(USD)),
	capPeriod: t.Optional(t.UnionEnum(CAP_PERIODS)),
	models: t.Optional(t.Nullable(t.Array(t.String({ maxLength: 200 }), { maxItems: 200 }))),
	requestsPerMinute: t.Optional(t.Nullable(t.Integer({ minimum: 1 }))),
	concurrencyMax: t.Optional(t.Nullable(t.Integer({ minimum: 1 }))),
};
const name = t.String({ minLength: 1, maxLength: 100 });
const query = t.Object(ACCOUNT_QUERY);
const KEYS = t.Optional(t.Union([t.Literal("keep"), t.Literal("revoke")]));

interface SettingsBody {
	name?: string;
	capUsd?: string | null;
	capPeriod?: CapPeriod;
	models?: string[] | null;
	requestsPerMinute?: number | null;
	concurrencyMax?: number | null;
}

/** Projects of the visited account: made, listed, changed, archived, and who works in them; a developer's are those that he works in. */
export function projectRoutes(parts: ConsoleParts) {
	const { statements, visits } = parts;

	function act(request: Request, action: AuditAction, subject: string, detail: Record<string, unknown> = {}) {
		const { viewer, accountId } = visits.account(request);
		const ip = visits.of(request).connection.address;
		return audit(statements, { actor: viewer.userId, action, subject, accountId, ip, detail });
	}

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
				const { accountId } = visits.account(request);
				const { id } = await createProject(statements, accountId, { ...settingsOf(body), name: body.name });
				await act(request, "project.create", id, { ...body });
				return view(request, id);
			},
			{ query, body: t.Object({ name, ...settings }) },
		)
		.patch(
			"/:id",
			async ({ request, params, body }): Promise<{ project: ProjectView; fence: Fence }> => {
				const { accountId } = visits.account(request);
				const changes = settingsOf(body);
				const before = await getProject(statements, { id: params.id, accountId });
				if (changes.capNanoUsd !== undefined || changes.capPeriod !== undefined)
					await checkWidening(parts, request, wideningOf(before, changes));
				const entry = await updateProject(statements, { id: params.id, accountId }, changes);
				await act(request, "project.update", params.id, { ...body });
				const fence = await fenceOf(parts, visits.of(request).connection, entry);
				return { project: await view(request, params.id), fence };
			},
			{ query, body: t.Object({ name: t.Optional(name), ...settings }) },
		)
		.post(
			"/:id/archive",
			async ({ request, params }): Promise<{ project: ProjectView; fence: Fence }> => {
				const { accountId } = visits.account(request);
				const entry = await archiveProject(statements, { id: params.id, accountId });
				const fence = await fenceOf(parts, visits.of(request).connection, entry);
				await act(request, "project.archive", params.id, { effective: fence.effective, elapsedMs: fence.elapsedMs });
				return { project: await view(request, params.id), fence };
			},
			{ query, body: EMPTY_BODY },
		)
		.get(
			"/:id/members",
			async ({ request, params }): Promise<{ items: ProjectMemberView[] }> => {
				await view(request, params.id);
				return { items: await listProjectMembers(statements, params.id) };
			},
			{ query },
		)
		.put(
			"/:id/members/:userId",
			async ({ request, params }): Promise<{ added: true }> => {
				const { accountId } = visits.account(request);
				const { id: projectId, userId } = params;
				await getProject(statements, { id: projectId, accountId });
				await addProjectMember(statements, { projectId, accountId, userId });
				await act(request, "project.member_add", projectId, { userId });
				return { added: true };
			},
			{ query, body: EMPTY_BODY },
		)
		.delete(
			"/:id/members/:userId",
			async ({ request, params, query }): Promise<{ removed: true; revoked: string[]; fence: Fence | null }> => {
				const { accountId } = visits.account(request);
				const { id: projectId, userId } = params;
				await getProject(statements, { id: projectId, accountId });
				await takeOutOfProject(statements, { projectId, accountId, userId }, query.keys);
				await act(request, "project.member_remove", projectId, { userId, keys: query.keys ?? "none" });
				if (query.keys !== "revoke") return { removed: true, revoked: [], fence: null };
				const { ids, entry } = await revokeKeysMadeBy(statements, accountId, userId, projectId);
				for (const id of ids) await act(request, "key.revoke", id, { madeBy: userId });
				return {
					removed: true,
					revoked: ids,
					fence: entry && (await fenceOf(parts, visits.of(request).connection, entry)),
				};
			},
			{ query: t.Object({ ...ACCOUNT_QUERY, keys: KEYS }) },
		);
}

/** Absent stays absent, null stays null. */
function settingsOf(body: SettingsBody): ProjectSettings {
	const { capUsd, ...rest } = body;
	if (capUsd === undefined) return rest;
	return { ...rest, capNanoUsd: capUsd === null ? null : amountOf(capUsd, "capUsd") };
}
