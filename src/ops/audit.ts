import { newId } from "../base/id.ts";
import { BATCH_ROWS, deleteInBatches } from "../db/delete-in-batches.ts";
import type { Statements } from "../db/statements.ts";
import type { AuditAction } from "./audit-action.ts";

export interface Act {
	/** A user's id, or the name of a service. */
	readonly actor: string;
	readonly action: AuditAction;
	readonly subject: string;
	readonly accountId: string | null;
	readonly ip: string | null;
	/** Never a secret. */
	readonly detail?: Readonly<Record<string, unknown>>;
}

/** An act recorded by the same statement that performs it (`audit_note`), so that no crash can separate the two. */
export interface Noted {
	readonly id: string;
	readonly actor: string;
	readonly action: AuditAction;
	readonly ip: string | null;
	/** Never a secret. */
	readonly detail: Readonly<Record<string, unknown>>;
}

export interface AuditEntry {
	readonly id: string;
	readonly atMs: number;
	readonly actor: string;
	readonly actorEmail: string | null;
	/** An `AuditAction`, or another version's. */
	readonly action: string;
	readonly subject: string;
	readonly accountId: string | null;
	readonly ip: string | null;
	readonly detail: Record<string, unknown>;
}

/** Records an act. It is awaited before the act is answered: an unrecorded act has not succeeded. */
export async function audit(statements: Statements, act: Act): Promise<void> {
	await statements`
		insert into audit_event (id, actor, action, subject, account_id, ip, detail)
		values (${newId("aud")}, ${act.actor}, ${act.action}, ${act.subject}, ${act.accountId}, ${act.ip},
			${JSON.stringify(act.detail ?? {})}::text::jsonb)`;
}

/** The statement adds the subject and the account. */
export const noted = ({ actor, action, ip, detail = {} }: Omit<Act, "subject" | "accountId">): Noted => ({
	...{ id: newId("aud"), actor, action, ip, detail },
});

/** The argument of `audit_note`; null if no act is recorded, as on the command line. */
export function notedJson(...acts: readonly (Noted | undefined)[]): string | null {
	const lines = acts.filter((act) => act !== undefined);
	return lines.length === 0 ? null : JSON.stringify(lines);
}

/** Adds an act's outcome to its row: whether and when all instances applied it. */
export async function noteOutcome(
	statements: Statements,
	{ id }: Noted,
	{ effective, elapsedMs }: { effective: boolean; elapsedMs: number },
): Promise<void> {
	await statements`
		update audit_event set detail = detail || ${JSON.stringify({ effective, elapsedMs })}::text::jsonb where id = ${id}`;
}

export interface AuditFilter {
	readonly subject?: string | undefined;
	/** A user's id or e-mail address. */
	readonly actor?: string | undefined;
	readonly action?: string | undefined;
}

/** Newest first. */
export async function listAudit(
	statements: Statements,
	filter: AuditFilter,
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

/** Deletes acts older than `days`, oldest first, and stops at the first younger one. */
export async function forgetActs(statements: Statements, days: number): Promise<void> {
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
