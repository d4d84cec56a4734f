import { Fault } from "../base/fault.ts";
import { isoOrNull } from "../base/iso-date.ts";
import { revokeKeysMadeBy } from "../console/members/member-keys.ts";
import type { ProjectMemberView } from "../console/projects/project-members.ts";
import {
	addProjectMember,
	listProjectMembers,
	memberByEmail,
	takeOutOfProject,
} from "../console/projects/project-members.ts";
import type { Statements } from "../db/statements.ts";
import type { ProjectRecord } from "../keys/project-admin.ts";
import { archiveProject, createProject, getProject, listProjects, updateProject } from "../keys/project-admin.ts";
import { formatUsd } from "../money/nano-usd.ts";
import { namedAccount } from "./account-commands.ts";
import type { Command } from "./command.ts";
import { UsageError } from "./command.ts";
import { actInForce, FENCE_OPTIONS, inForceOutput } from "./fence-output.ts";
import { PAGE_OPTIONS, pageOf } from "./option-values.ts";
import { capText, changesOf, LIMIT_OPTIONS, limitsOf } from "./setting-options.ts";
import { listOutput } from "./table.ts";

const create: Command = {
	name: "project create",
	summary: "make a project: a budget for some of an account's keys",
	arguments: [],
	options: {
		account: { type: "string", value: "ID", required: true, help: "the account that it belongs to" },
		name: { type: "string", value: "N", required: true, help: "a name, as search or support" },
		...LIMIT_OPTIONS,
	},
	details: "Cap and limits are those of all its keys together; each key may have its own beside them.",
	async run({ withDatabase }, input) {
		const settings = { ...limitsOf(input), name: input.required("name") };
		const { id } = await withDatabase(({ statements }) =>
			createProject(statements, input.required("account"), settings),
		);
		return { json: { id }, text: `made project ${id}` };
	},
};

const list: Command = {
	name: "project list",
	summary: "an account's projects",
	arguments: [],
	options: { account: { type: "string", value: "ID", required: true, help: "whose" }, ...PAGE_OPTIONS },
	async run({ withDatabase }, input) {
		const page = await withDatabase(async ({ statements }) => {
			const { id } = await namedAccount(statements, input.required("account"));
			return listProjects(statements, id, pageOf(input));
		});
		const head = ["ID", "NAME", "STATE", "KEYS", "SPENT", "CAP", "MODELS"];
		return listOutput(page, head, projectJson, (row) => [
			row.id,
			row.name,
			row.state,
			String(row.keys),
			formatUsd(row.spentNanoUsd),
			capText(row),
			row.models.length === 0 ? "all" : row.models.join(","),
		]);
	},
};

const update: Command = {
	name: "project update",
	summary: "change a project's settings",
	arguments: ["ID"],
	options: { name: { type: "string", value: "N", help: "a new name" }, ...LIMIT_OPTIONS, ...FENCE_OPTIONS },
	details:
		"Returns when every instance goes by the new settings; one that cannot be reached is waited for until its lease (LEASE_TTL_S) is over.",
	async run(context, input) {
		const changes = changesOf(input, limitsOf(input));
		return actInForce(context, input, (statements, id) => updateProject(statements, { id }, changes));
	},
};

const archive: Command = {
	name: "project archive",
	summary: "end a project with all its keys, for good",
	arguments: ["ID"],
	options: FENCE_OPTIONS,
	details:
		"Returns when no instance admits a request by its keys any more; what was admitted settles normally. An instance that cannot be reached is waited for until its lease (LEASE_TTL_S) is over.",
	run: (context, input) => actInForce(context, input, (statements, id) => archiveProject(statements, { id })),
};

/** `who` is a user's id, or the address of a member of the account. Fault `not_found`. */
async function placeOf(statements: Statements, projectId: string, who: string) {
	const { accountId } = await getProject(statements, { id: projectId });
	const userId = who.includes("@") ? await memberByEmail(statements, accountId, who) : who;
	if (userId === null) throw new Fault("not_found", `The account has no member ${who}.`);
	return { projectId, accountId, userId };
}

const listMembers: Command = {
	name: "project member list",
	summary: "who works in a project, in the order in which they joined",
	arguments: ["ID"],
	options: {},
	async run({ withDatabase }, input) {
		const members = await withDatabase(async ({ statements }) => {
			const { id } = await getProject(statements, { id: input.argument(0) });
			return listProjectMembers(statements, id);
		});
		return listOutput({ items: members, next: null }, ["ID", "NAME", "EMAIL", "JOINED"], memberJson, (row) => [
			row.userId,
			row.name,
			row.email,
			isoOrNull(row.joinedAtMs) ?? "",
		]);
	},
};

const addMember: Command = {
	name: "project member add",
	summary: "let a member of the account work in a project",
	arguments: ["ID", "PERSON"],
	options: {},
	details: "PERSON is an id or an e-mail address. Whoever works in projects sees and makes keys of those alone.",
	async run({ withDatabase }, input) {
		const { projectId, userId } = await withDatabase(async ({ statements }) => {
			const place = await placeOf(statements, input.argument(0), input.argument(1));
			await addProjectMember(statements, place);
			return place;
		});
		return { json: { id: projectId, user: userId }, text: `${userId} works in ${projectId}` };
	},
};

const removeMember: Command = {
	name: "project member remove",
	summary: "take somebody out of a project",
	arguments: ["ID", "PERSON"],
	options: {
		keys: { type: "string", value: "W", help: "what becomes of the keys that he made in it: keep or revoke" },
		...FENCE_OPTIONS,
	},
	details:
		"Revoking returns when no instance admits a request by those keys any more, and may be repeated. Without --keys it fails where there are such keys.",
	async run({ withDatabase }, input) {
		const keys = input.option("keys");
		if (keys !== undefined && keys !== "keep" && keys !== "revoke") throw new UsageError("--keys takes keep or revoke");
		return withDatabase(async ({ statements, liveness }) => {
			const place = await placeOf(statements, input.argument(0), input.argument(1));
			const { projectId, accountId, userId } = place;
			await takeOutOfProject(statements, place, keys);
			const { ids, entry } =
				keys === "revoke" ? await revokeKeysMadeBy(statements, accountId, userId, projectId) : { ids: [], entry: null };
			const about = { id: projectId, user: userId, revoked: ids };
			if (entry !== null) return inForceOutput({ liveness }, about, entry, input);
			return { json: about, text: `${userId} works in ${projectId} no more` };
		});
	},
};

export const projectCommands: readonly Command[] = [
	create,
	list,
	update,
	archive,
	listMembers,
	addMember,
	removeMember,
];

function memberJson({ userId, name, email, joinedAtMs }: ProjectMemberView): Record<string, unknown> {
	return { id: userId, name, email, joined_at: isoOrNull(joinedAtMs) };
}

function projectJson(project: ProjectRecord): Record<string, unknown> {
	return {
		id: project.id,
		account: project.accountId,
		name: project.name,
		state: project.state,
		keys: project.keys,
		cap_usd: project.capNanoUsd === null ? null : formatUsd(project.capNanoUsd),
		cap_period: project.capPeriod,
		cap_spent_usd: formatUsd(project.capSpentNanoUsd),
		cap_renews_at: isoOrNull(project.capRenewsAtMs),
		spent_usd: formatUsd(project.spentNanoUsd),
		models: project.models,
		requests_per_minute: project.requestsPerMinute,
		concurrency: project.concurrencyMax,
		created_at: isoOrNull(project.createdAtMs),
		archived_at: isoOrNull(project.archivedAtMs),
	};
}
