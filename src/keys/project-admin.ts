import { assert } from "../base/assert.ts";
import { Fault } from "../base/fault.ts";
import { newId } from "../base/id.ts";
import { type AppendedEntry, type AppendedRow, toEntry } from "../cluster/control-log.ts";
import { type ListPage, type PageQuery, pageBounds, toPageById } from "../db/page.ts";
import { type Statements, throwFault } from "../db/statements.ts";
import { type AuditNote, auditNotesJson } from "../ops/audit.ts";
import type { ProjectState } from "./key-entry.ts";
import { checkKeySettings, type KeySettings } from "./key-settings.ts";
import { type LimitedRecord, type LimitedRow, toLimitedRecord } from "./limited-record.ts";

/** Settings of a project, all of which keys have too. */
export type ProjectSettings = Pick<
	KeySettings,
	"name" | "capNanoUsd" | "capPeriod" | "models" | "requestsPerMinute" | "concurrencyMax" | "tokensPerMinute"
>;

/** Identifies a project. With an account id, a project of another account counts as unknown. */
export interface ProjectRef {
	readonly id: string;
	readonly accountId?: string;
}

export interface ProjectRecord extends LimitedRecord {
	readonly id: string;
	readonly accountId: string;
	readonly name: string;
	readonly state: ProjectState;
	readonly keys: number;
	readonly createdAtMs: number;
	readonly archivedAtMs: number | null;
	/** Entity tag of all changeable fields; it changes with each of them. */
	readonly etag: string;
}

/** Maximum number of projects of an account, including archived ones. Stops scripts that create projects in a loop. */
const PROJECTS_MAX = 1_000;

/** Creates a project, once per `id`. Faults: `not_found`, `invalid_request`, `conflict`. */
export async function createProject(
	statements: Statements,
	accountId: string,
	settings: ProjectSettings & { readonly name: string },
	id: string = newId("proj"),
	act?: AuditNote,
): Promise<{ id: string }> {
	checkKeySettings(settings);
	await statements`
		select audit_note(${auditNotesJson(act)}::text::jsonb, ${id}, ${accountId})
		from project_create(${id}, ${accountId}, ${JSON.stringify(patchOf(settings))}::text::jsonb, ${PROJECTS_MAX}::integer)
			as made where made`.catch(throwFault);
	return { id };
}

/** Like `updateKey`. Faults: `not_found`, `conflict` (archived project), `invalid_request`, `precondition_failed`. */
export async function updateProject(
	statements: Statements,
	project: ProjectRef,
	changes: ProjectSettings,
	match: readonly string[] | null = null,
	act?: AuditNote,
): Promise<{ id: string } & AppendedEntry> {
	checkKeySettings(changes);
	return patchProject(statements, project, patchOf(changes), match, act);
}

/** Ends a project and its keys for good; effective when `waitUntilApplied` resolves. Fault `not_found`. */
export async function archiveProject(
	statements: Statements,
	project: ProjectRef,
	match: readonly string[] | null = null,
	act?: AuditNote,
): Promise<{ id: string } & AppendedEntry> {
	return patchProject(statements, project, { state: "archived" }, match, act);
}

const patchOf = (settings: ProjectSettings) =>
	settings.models === undefined ? settings : { ...settings, models: settings.models ?? [] };

async function patchProject(
	statements: Statements,
	{ id, accountId }: ProjectRef,
	patch: ProjectSettings | { readonly state: "archived" },
	match: readonly string[] | null,
	act: AuditNote | undefined,
): Promise<{ id: string } & AppendedEntry> {
	const [row] = await statements<AppendedRow>`
		select project_update(${id}, ${accountId ?? null}, ${JSON.stringify(patch)}::text::jsonb,
			${match === null ? null : JSON.stringify(match)}::text::jsonb) as seq, control_at() as at_micros,
			audit_note(${auditNotesJson(act)}::text::jsonb, ${id},
				(select p.account_id from project p where p.id = ${id}))`.catch(throwFault);
	assert(row !== undefined, "a change of a project says its entry");
	return { id, ...toEntry(row) };
}

/** Reads a project. Fault `not_found`. */
export async function getProject(statements: Statements, project: ProjectRef): Promise<ProjectRecord> {
	const [row] = await statements<LimitedRow>`
		select p.*, project_etag(p) as etag, budget_spent(p.id) as spent, a.time_zone, clock_timestamp() as now,
			budget_spent(cap_budget(p)) as cap_spent, budget_absent(cap_budget(p)) as absent,
			(select count(*)::integer from api_key k where k.project_id = p.id and k.state = 'active' and (k.expires_at is null or k.expires_at > now())) as keys
		from project p join account a on a.id = p.account_id
		where p.id = ${project.id} and (${project.accountId ?? null}::text is null or p.account_id = ${project.accountId ?? null}::text)`;
	if (row === undefined) throw new Fault("not_found", "There is no project {id}.", { values: { id: project.id } });
	return toLimitedRecord(row);
}

/** Projects of an account, newest first, including archived ones; with `memberId` only those of this member. */
export async function listProjects(
	statements: Statements,
	accountId: string,
	page: PageQuery = {},
	memberId: string | null = null,
): Promise<ListPage<ProjectRecord>> {
	const { shown, asked, after } = pageBounds(page);
	const rows = await statements<LimitedRow>`
		select p.*, project_etag(p) as etag, budget_spent(p.id) as spent, a.time_zone, clock_timestamp() as now,
			budget_spent(cap_budget(p)) as cap_spent, budget_absent(cap_budget(p)) as absent,
			(select count(*)::integer from api_key k where k.project_id = p.id and k.state = 'active' and (k.expires_at is null or k.expires_at > now())) as keys
		from project p join account a on a.id = p.account_id
		where p.account_id = ${accountId} and (${after}::text is null or p.id < ${after}::text)
			and (${memberId}::text is null or exists (
				select 1 from project_member m where m.project_id = p.id and m.user_id = ${memberId}::text))
		order by p.id desc limit ${asked}`;
	return toPageById(rows.map(toLimitedRecord<ProjectRecord>), shown);
}
