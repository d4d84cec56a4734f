import type { ProjectRecord } from "../keys/project-admin.ts";
import { archiveProject, createProject, listProjects, updateProject } from "../keys/project-admin.ts";
import { formatUsd } from "../money/nano-usd.ts";
import type { Command } from "./command.ts";
import { UsageError } from "./command.ts";
import { FENCE_OPTIONS, inForceOutput } from "./fence-output.ts";
import { PAGE_OPTIONS, pageOf } from "./option-values.ts";
import { capText, LIMIT_OPTIONS, limitsOf } from "./setting-options.ts";
import { isoOrNull, listOutput } from "./table.ts";

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
		const page = await withDatabase(({ statements }) =>
			listProjects(statements, input.required("account"), pageOf(input)),
		);
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
	async run({ withDatabase }, input) {
		const name = input.option("name");
		const changes = { ...limitsOf(input), ...(name === undefined ? {} : { name }) };
		if (Object.keys(changes).length === 0) throw new UsageError("nothing to change was given");
		return withDatabase(async ({ statements, liveness }) => {
			const { id, ...entry } = await updateProject(statements, { id: input.argument(0) }, changes);
			return inForceOutput({ liveness }, { id }, entry, input);
		});
	},
};

const archive: Command = {
	name: "project archive",
	summary: "end a project with all its keys, for good",
	arguments: ["ID"],
	options: FENCE_OPTIONS,
	details:
		"Returns when no instance admits a request by its keys any more; what was admitted settles normally. An instance that cannot be reached is waited for until its lease (LEASE_TTL_S) is over.",
	run: ({ withDatabase }, input) =>
		withDatabase(async ({ statements, liveness }) => {
			const { id, ...entry } = await archiveProject(statements, { id: input.argument(0) });
			return inForceOutput({ liveness }, { id }, entry, input);
		}),
};

export const projectCommands: readonly Command[] = [create, list, update, archive];

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
