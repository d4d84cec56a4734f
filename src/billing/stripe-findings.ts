import { sql } from "drizzle-orm";
import { Fault } from "../base/fault.ts";
import { type RowView, type Statements, toView } from "../db/statements.ts";
import type { Transactional } from "../db/transactional.ts";
import { auditNote, auditNotesJson } from "../ops/audit.ts";
import { PROCESSING_S, RECEIVED } from "../ops/payment-findings.ts";
import type { stripeFinding } from "./stripe.sql.ts";

type Row = RowView<typeof stripeFinding>;

export type Finding = Pick<Row, "id" | "kind" | "reason" | "topUpId" | "amountCents" | "currency">;

export interface OpenFinding extends Finding, Pick<Row, "foundAtMs"> {
	readonly accountId: string | null;
}

/** Executes statements in a transaction, or without one on the client. */
type Executor = Pick<Transactional, "execute">;

const SHOWN_MAX = 50;

/** Records a finding. An existing one stays unchanged, unless Stripe resolved it as `reopened`: it opens again. */
export async function recordFinding(db: Executor, finding: Finding, reopened: string | null = null): Promise<void> {
	const { id, kind, reason, topUpId, amountCents, currency } = finding;
	await db.execute(sql`
		insert into stripe_finding as f (id, kind, reason, top_up_id, amount_cents, currency)
		values (${id}, ${kind}, ${reason}, ${topUpId}, ${amountCents}::bigint, ${currency}) on conflict (id) do update
		set reason = excluded.reason, found_at = clock_timestamp(), resolved_at = null, resolved_by = null, resolution = null
		where f.resolved_by = 'stripe' and f.resolution = ${reopened}::text`);
}

export async function setFindingReason(db: Executor, id: string, reason: string): Promise<void> {
	await db.execute(sql`update stripe_finding set reason = ${reason} where id = ${id} and resolved_at is null`);
}

/** Resolves a finding because Stripe and the books agree again. `resolution` says why. */
export async function resolveFinding(db: Executor, id: string, resolution: string): Promise<void> {
	await db.execute(sql`
		update stripe_finding set resolved_at = clock_timestamp(), resolved_by = 'stripe', resolution = ${resolution}
		where id = ${id} and resolved_at is null`);
}

/** Open findings, oldest first. */
export async function listOpenFindings(statements: Statements): Promise<OpenFinding[]> {
	const rows = await statements<object>`
		select f.id, f.kind, f.reason, f.top_up_id, f.amount_cents::float8 as amount_cents, f.currency, f.found_at, t.account_id
		from stripe_finding f left join top_up t on t.id = f.top_up_id
		where f.resolved_at is null
			and (f.reason <> ${RECEIVED} or f.found_at < clock_timestamp() - make_interval(secs => ${PROCESSING_S}::integer))
		order by f.found_at limit ${SHOWN_MAX}`;
	return rows.map(toView<OpenFinding>);
}

/** Account to which a finding belongs; null if the finding or its account is unknown. */
export async function accountOfFinding(statements: Statements, id: string): Promise<string | null> {
	const [row] = await statements<{ account_id: string }>`
		select t.account_id from stripe_finding f join top_up t on t.id = f.top_up_id where f.id = ${id}`;
	return row?.account_id ?? null;
}

/**
 * Resolves a finding for an operator, who refunded at Stripe or adjusted the credit. The same statement writes the
 * audit log. Idempotent. Fault not_found.
 */
export async function closeFinding(
	statements: Statements,
	closing: { id: string; operatorId: string; reason: string; ip: string | null },
): Promise<void> {
	const { id, operatorId, reason, ip } = closing;
	const act = auditNote({ actor: operatorId, action: "payment.close", ip, detail: { reason } });
	await statements`
		with closed as (
			update stripe_finding set resolved_at = clock_timestamp(), resolved_by = ${operatorId}::text, resolution = ${reason}::text
			where id = ${id}::text and resolved_at is null returning id, top_up_id
		)
		select audit_note(${auditNotesJson(act)}::text::jsonb, c.id, t.account_id)
		from closed c left join top_up t on t.id = c.top_up_id`;
	const [row] = await statements`select 1 from stripe_finding where id = ${id} and resolved_at is not null`;
	if (row === undefined) throw new Fault("not_found", "There is no finding {id}.", { values: { id } });
}
