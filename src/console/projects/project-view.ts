import type { Statements } from "../../db/statements.ts";
import type { ProjectRecord } from "../../keys/project-admin.ts";
import { addUsd, type NanoUsd, nanoUsdOfColumn, ZERO_USD } from "../../money/nano-usd.ts";
import { ConsoleError } from "../console-error.ts";

export interface ProjectView extends Omit<ProjectRecord, "accountId" | "models" | "etag" | "absentNanoUsd"> {
	/** Held by running requests admitted in the project, as of the last flush, and by dead instances. */
	readonly heldNanoUsd: NanoUsd;
	/** Empty: all. */
	readonly models: string[];
}

/** Credit held by running requests, by the project of their key at admission. */
export async function heldByProject(statements: Statements, accountId: string): Promise<ReadonlyMap<string, NanoUsd>> {
	const rows = await statements<{ id: string; held: string }>`
		select r.project_id as id, sum(r.reserved_nano_usd) as held from reservation r
			join instance_now i on i.id = r.instance_id and i.epoch = r.epoch and i.state = 'live' and i.lease_until > clock_timestamp()
		where r.account_id = ${accountId} and r.project_id is not null group by 1`;
	return new Map(rows.map(({ id, held }) => [id, nanoUsdOfColumn(held)]));
}

export function projectView(project: ProjectRecord, held: NanoUsd | undefined): ProjectView {
	const { accountId: _, etag: __, models, absentNanoUsd, ...shown } = project;
	return { ...shown, models: [...models], heldNanoUsd: addUsd(held ?? ZERO_USD, absentNanoUsd) };
}

/** Fault not_found for a project that this person does not work in; `worker` null may see all. */
export async function checkWorksIn(statements: Statements, projectId: string, personId: string | null): Promise<void> {
	if (personId === null) return;
	const [row] = await statements`
		select 1 from project_member where project_id = ${projectId} and user_id = ${personId}`;
	if (row === undefined)
		throw new ConsoleError("not_found", "There is no project {id}.", { values: { id: projectId } });
}
