import { sql } from "drizzle-orm";
import { Fault } from "../base/fault.ts";
import { newId } from "../base/id.ts";
import type { Statements } from "../db/statements.ts";
import type { Transactional } from "../db/transactional.ts";
import type { AuditAction } from "../ops/audit-action.ts";
import { IN_HAND_S, RECEIVED } from "../ops/payment-findings.ts";

const CLOSED: AuditAction = "payment.close";

export type FindingKind = "uncredited" | "unpaid" | "refund" | "dispute" | "unfinished" | "undecided";

export interface Finding {
	/** Unique subject: `paid:pi_…`, `books:top_…`, `refund:pi_…`, `dispute:dp_…`, `won:dp_…`, `open:att_…`. */
	readonly id: string;
	readonly kind: FindingKind;
	/** Text for operators. */
	readonly reason: string;
	readonly topUpId: string | null;
	readonly amountCents: number | null;
	/** As Stripe writes it, `usd`. */
	readonly currency: string | null;
}

/** An open finding, as operators see it. */
export interface OpenFinding extends Finding {
	readonly accountId: string | null;
	readonly foundAtMs: number;
}

/** A transaction, or the client outside of one. */
type Executor = Pick<Transactional, "execute">;

const SHOWN_MAX = 50;

/** Records a finding. A known or resolved one stays as it is. */
export async function noteFinding(db: Executor, finding: Finding): Promise<void> {
	const { id, kind, reason, topUpId, amountCents, currency } = finding;
	await db.execute(sql`
		insert into stripe_finding (id, kind, reason, top_up_id, amount_cents, currency)
		values (${id}, ${kind}, ${reason}, ${topUpId}, ${amountCents}::bigint, ${currency}) on conflict (id) do nothing`);
}

/** Changes the reason of an open finding. */
export async function explainFinding(db: Executor, id: string, reason: string): Promise<void> {
	await db.execute(sql`update stripe_finding set reason = ${reason} where id = ${id} and resolved_at is null`);
}

/** Resolves it: Stripe and the books agree now. */
export async function settleFinding(db: Executor, id: string, resolution: string): Promise<void> {
	await db.execute(sql`
		update stripe_finding set resolved_at = clock_timestamp(), resolved_by = 'stripe', resolution = ${resolution}
		where id = ${id} and resolved_at is null`);
}

/** Reopens a finding that was resolved by agreement, as of now. */
export async function reopenFinding(
	db: Executor,
	id: string,
	{ reason, resolution }: { reason: string; resolution: string },
): Promise<void> {
	await db.execute(sql`
		update stripe_finding set reason = ${reason}, found_at = clock_timestamp(), resolved_at = null, resolved_by = null, resolution = null
		where id = ${id} and resolved_by = 'stripe' and resolution = ${resolution}`);
}

interface FindingRow {
	id: string;
	kind: FindingKind;
	reason: string;
	top_up_id: string | null;
	amount_cents: string | null;
	currency: string | null;
	account_id: string | null;
	found_at: Date;
}

/** Oldest first. */
export async function listOpenFindings(statements: Statements): Promise<OpenFinding[]> {
	const rows = await statements<FindingRow>`
		select f.*, t.account_id from stripe_finding f left join top_up t on t.id = f.top_up_id
		where f.resolved_at is null
			and (f.reason <> ${RECEIVED} or f.found_at < clock_timestamp() - make_interval(secs => ${IN_HAND_S}::integer))
		order by f.found_at limit ${SHOWN_MAX}`;
	return rows.map((row) => ({
		id: row.id,
		kind: row.kind,
		reason: row.reason,
		topUpId: row.top_up_id,
		amountCents: row.amount_cents === null ? null : Number(row.amount_cents),
		currency: row.currency,
		accountId: row.account_id,
		foundAtMs: row.found_at.getTime(),
	}));
}

/** The account of a finding; null if it is unknown or there is no such finding. */
export async function accountOfFinding(statements: Statements, id: string): Promise<string | null> {
	const [row] = await statements<{ account_id: string }>`
		select t.account_id from stripe_finding f join top_up t on t.id = f.top_up_id where f.id = ${id}`;
	return row?.account_id ?? null;
}

/**
 * Resolves a finding by hand: the operator refunded at Stripe or adjusted the credit. The audit log line is in the same
 * statement. Idempotent. Fault not_found.
 */
export async function closeFinding(
	statements: Statements,
	closing: { id: string; operatorId: string; reason: string; ip: string | null },
): Promise<void> {
	const { id, operatorId, reason, ip } = closing;
	await statements`
		with closed as (
			update stripe_finding set resolved_at = clock_timestamp(), resolved_by = ${operatorId}::text, resolution = ${reason}::text
			where id = ${id}::text and resolved_at is null returning id, top_up_id
		)
		insert into audit_event (id, actor, action, subject, account_id, ip, detail)
		select ${newId("aud")}::text, ${operatorId}::text, ${CLOSED}::text, c.id, t.account_id, ${ip}::text,
			${JSON.stringify({ reason })}::text::jsonb from closed c left join top_up t on t.id = c.top_up_id`;
	const [row] = await statements`select 1 from stripe_finding where id = ${id} and resolved_at is not null`;
	if (row === undefined) throw new Fault("not_found", "There is no finding {id}.", { values: { id } });
}
