import { newId } from "../base/id.ts";
import { BATCH_ROWS, deleteInBatches, type Statements } from "../db/statements.ts";
import type { AuditAction } from "./audit-action.ts";

export interface AuditAct {
	/** Id of the acting user, or the name of a service. */
	readonly actor: string;
	readonly action: AuditAction;
	readonly subject: string;
	readonly accountId: string | null;
	readonly ip: string | null;
	/** Details of the action; never a secret. */
	readonly detail?: Readonly<Record<string, unknown>>;
}

/** An action that one SQL statement performs and records (`audit_note`), so that no crash separates the two. */
export interface AuditNote {
	readonly id: string;
	readonly actor: string;
	readonly action: AuditAction;
	readonly ip: string | null;
	/** Details of the action; never a secret. */
	readonly detail: Readonly<Record<string, unknown>>;
}

export interface AuditEntry {
	readonly id: string;
	readonly atMs: number;
	readonly actor: string;
	readonly actorEmail: string | null;
	/** An `AuditAction`, or an action that another version of the program recorded. */
	readonly action: string;
	readonly subject: string;
	readonly accountId: string | null;
	readonly ip: string | null;
	readonly detail: Record<string, unknown>;
}

/** Records an action. Await it before the response, because an action without a record counts as failed. */
export async function writeAudit(statements: Statements, act: AuditAct): Promise<void> {
	await statements`
		insert into audit_event (id, actor, action, subject, account_id, ip, detail)
		values (${newId("aud")}, ${act.actor}, ${act.action}, ${act.subject}, ${act.accountId}, ${act.ip},
			${JSON.stringify(act.detail ?? {})}::text::jsonb)`;
}

/** Longest JSON of an entry's details. Above it each longer value is cut to VALUE_CHARS_MAX. */
const DETAIL_CHARS_MAX = 4_000;
const VALUE_CHARS_MAX = 200;

/** An entry without subject and account, which the SQL statement adds. */
export const auditNote = ({ actor, action, ip, detail = {} }: Omit<AuditAct, "subject" | "accountId">): AuditNote => ({
	...{ id: newId("aud"), actor, action, ip, detail: bounded(detail) },
});

function bounded(detail: AuditNote["detail"]): AuditNote["detail"] {
	if (JSON.stringify(detail).length <= DETAIL_CHARS_MAX) return detail;
	const cut = (value: unknown) => {
		const text = typeof value === "string" ? value : (JSON.stringify(value) ?? "");
		return text.length <= VALUE_CHARS_MAX ? value : `${text.slice(0, VALUE_CHARS_MAX).toWellFormed()}…`;
	};
	return Object.fromEntries(Object.entries(detail).map(([name, value]) => [name, cut(value)]));
}

/** Argument of `audit_note`; null if nothing is recorded, as for the command line. */
export function auditNotesJson(...acts: readonly (AuditNote | undefined)[]): string | null {
	const lines = acts.filter((act) => act !== undefined);
	return lines.length === 0 ? null : JSON.stringify(lines);
}

/** Adds an action's outcome to its row: whether and when all instances had applied it. */
export async function recordAuditOutcome(
	statements: Statements,
	{ id }: AuditNote,
	{ effective, elapsedMs }: { effective: boolean; elapsedMs: number },
): Promise<void> {
	await statements`
		update audit_event set detail = detail || ${JSON.stringify({ effective, elapsedMs })}::text::jsonb where id = ${id}`;
}

export async function listAudit(
	statements: Statements,
	filter: {
		readonly subject?: string | undefined;
		readonly actor?: string | undefined;
		readonly action?: string | undefined;
	},
	page: { asked: number; after: string | null },
): Promise<AuditEntry[]> {
	const { subject = null, actor = null, action = null } = filter;
	const rows = await statements<Omit<AuditEntry, "atMs"> & { at: Date }>`
		select e.id, e.at, e.actor, u.email as "actorEmail", e.action, e.subject, e.account_id as "accountId", e.ip, e.detail
		from audit_event e left join console_user u on u.id = e.actor
		where (${subject}::text is null or e.subject = ${subject}::text or e.account_id = ${subject}::text)
			and (${actor}::text is null or e.actor = ${actor}::text or u.email = ${actor}::text)
			and (${action}::text is null or e.action = ${action}::text)
			and (${page.after}::text is null or e.id < ${page.after}::text)
		order by e.id desc limit ${page.asked}`;
	return rows.map(({ at, ...row }) => ({ ...row, atMs: at.getTime() }));
}

/** Deletes entries older than `days`, starting with the oldest. */
export async function deleteOldAudit(statements: Statements, days: number): Promise<void> {
	await deleteInBatches(async () => {
		const rows = await statements`
			delete from audit_event e using (
				select o.id, o.at from audit_event o order by o.id limit ${BATCH_ROWS}::integer
			) old
			where e.id = old.id and old.at < clock_timestamp() - make_interval(days => ${days}::integer)
			returning 1`;
		return rows.length;
	});
}

/** Maximum number of changes that are kept per account without RETENTION_AUDIT_DAYS; years of manual work. */
const ACCOUNT_ROWS_MAX = 20_000;
/** Number of newest entries whose accounts are checked, and of entries deleted per account and call. */
const LOOKED_AT = 10_000;
const ACCOUNT_BATCH_ROWS = 100;

/**
 * Deletes the oldest changes of keys, projects and settings of accounts that have too many. An account that keeps
 * writing is among the newest entries. Keeps entries about money, members, operators and management keys, and the
 * creation and rotation of active keys, from which a removed member's keys can be found.
 */
export async function deleteAuditBeyond(statements: Statements, most = ACCOUNT_ROWS_MAX): Promise<void> {
	await statements`
		with recent as (
			select distinct account_id from (select account_id from audit_event order by id desc limit ${LOOKED_AT}::integer) r
			where account_id is not null
		), old as (
			select e.id from recent r, lateral (
				select a.id from audit_event a where account_id = r.account_id and actor !~ '^mgk_'
					and action ~ '^(batch|company|key|notice|project)[.]|^account[.](alert|billing_details|rename|time_zone)$'
					and not (action in ('key.create', 'key.rotate') and exists (
						select 1 from api_key k where k.id = coalesce(a.detail->>'replacement', a.subject) and k.state = 'active'))
				order by id desc offset ${most}::integer limit ${ACCOUNT_BATCH_ROWS}::integer
			) e
		)
		delete from audit_event e using old where e.id = old.id`;
}
