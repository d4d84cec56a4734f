import { type SQL, sql } from "drizzle-orm";
import { Fault } from "../base/fault.ts";
import { newId } from "../base/id.ts";
import type { Statements } from "../db/statements.ts";
import type { Transactional } from "../db/transactional.ts";
import { isLabel } from "../keys/key-settings.ts";
import type { NanoUsd } from "../money/nano-usd.ts";
import { auditNote, auditNotesJson } from "../ops/audit.ts";
import type { AuditAction } from "../ops/audit-action.ts";
import { inTransaction, lockTopUp, type PaidTopUp, statementsIn, type Transaction } from "./stripe-books.ts";
import { getTopUp, rejectTopUp, type TopUpRecord } from "./top-ups.ts";

interface TransferCheck {
	readonly topUpId: string;
	readonly transactionReference: string;
	readonly operatorId: string;
	/** IP address of the operator, for the audit log. */
	readonly ip: string | null;
}

const REFERENCE_CHARS_MAX = 200;
const REFERENCE_SIGNS_MIN = 2;
const REJECTED: AuditAction = "topup.reject";

/**
 * Records that an operator saw the transfer on the bank statement, and credits the top-up; from `secondLookFrom` on, a
 * second operator must confirm first. Faults: not_found; conflict if it was decided before, is paid by card, the
 * transaction paid another top-up, or the second check differs or is by the same operator.
 */
export async function confirmTransfer(db: Transactional, check: TransferCheck, secondLookFrom: NanoUsd | null) {
	const { topUpId, transactionReference, operatorId } = check;
	if (!isReference(transactionReference)) {
		throw new Fault("invalid_request", "A transaction reference is one line with at least two letters or digits.", {
			param: "transactionReference",
		});
	}
	return inTransaction(db, "This transaction has already paid another top-up.", async (tx) => {
		const topUp = await lockTopUp(tx, topUpId);
		if (topUp === undefined) throw new Fault("not_found", "There is no top-up {id}.", { values: { id: topUpId } });
		if (topUp.method === "card") throw new Fault("conflict", "Only the payment provider can confirm a card payment.");
		if (topUp.state !== "pending")
			throw new Fault("conflict", "The top-up is already {state}.", { values: { state: topUp.state } });
		const [row] = await statementsIn(tx)<{ same: boolean; first_by: string }>`
			select ${sameReference(sql`transaction_reference`)} = ${sameReference(sql`${transactionReference}::text`)} as same, first_by
			from top_up_check where top_up_id = ${topUpId}`;
		const needsTwo = secondLookFrom !== null && topUp.amountNanoUsd >= secondLookFrom;
		if (row === undefined) {
			// Allows the transaction of a rejected or cancelled top-up to pay another top-up.
			await statementsIn(tx)`
				delete from top_up_check c using top_up t where t.id = c.top_up_id and t.state = 'rejected'
					and ${sameReference(sql`c.transaction_reference`)} = ${sameReference(sql`${transactionReference}::text`)}`;
			await statementsIn(tx)`
				insert into top_up_check (top_up_id, transaction_reference, first_by)
				values (${topUpId}, ${transactionReference}, ${operatorId})`;
			if (needsTwo) {
				await note(tx, "topup.look", topUp, check);
				return { secondLookNeeded: true };
			}
		} else {
			if (!row.same)
				throw new Fault("conflict", "The first operator recorded another transaction.", {
					param: "transactionReference",
				});
			if (row.first_by === operatorId && needsTwo)
				throw new Fault("conflict", "A second operator must confirm this top-up.");
			await statementsIn(tx)`
				update top_up_check set second_by = ${operatorId}, second_at = clock_timestamp() where top_up_id = ${topUpId}`;
		}
		await statementsIn(tx)`select topup_confirm(${topUpId}, ${operatorId}, ${newId("led")})`;
		await note(tx, "topup.confirm", topUp, check);
		return { secondLookNeeded: false };
	});
}

async function note(
	tx: Transaction,
	action: AuditAction,
	{ id, accountId, amountNanoUsd }: PaidTopUp,
	{ operatorId, ip, transactionReference }: TransferCheck,
): Promise<void> {
	const act = auditNote({ actor: operatorId, action, ip, detail: { transactionReference, amountNanoUsd } });
	await statementsIn(tx)`select audit_note(${auditNotesJson(act)}::text::jsonb, ${id}, ${accountId})`;
}

/** True for letters and digits with single signs between them; other texts could look like another reference. */
function isReference(text: string): boolean {
	return (
		isLabel(text, REFERENCE_CHARS_MAX) &&
		/^[\x20-\x7e]*$/.test(text) &&
		text.replace(/[^A-Za-z0-9]/g, "").length >= REFERENCE_SIGNS_MIN
	);
}

/** A bank reference without case and signs, as the index of `top_up_check` has it: `BANK1` and `Bank-1` are equal. */
const sameReference = (text: SQL): SQL => sql`upper(regexp_replace(${text}, '[^A-Za-z0-9]', '', 'g'))`;

/**
 * Rejects a top-up whose transfer did not arrive. The customer sees the reason, which the audit log stores. Idempotent.
 * Faults: not_found; conflict if it is paid by card or was confirmed.
 */
export async function rejectTransfer(
	statements: Statements,
	rejection: { topUpId: string; operatorId: string; reason: string; ip: string | null },
): Promise<TopUpRecord> {
	const { topUpId, operatorId, reason, ip } = rejection;
	const { method } = await getTopUp(statements, topUpId);
	if (method === "card") throw new Fault("conflict", "Only the payment provider can reject a card payment.");
	const act = auditNote({ actor: operatorId, action: REJECTED, ip, detail: { reason } });
	return rejectTopUp(statements, topUpId, operatorId, act);
}

/** Reasons that operators gave for rejections, by top-up. */
export async function rejectionReasons(statements: Statements, topUpIds: readonly string[]) {
	if (topUpIds.length === 0) return new Map<string, string>();
	const rows = await statements<{ id: string; reason: string | null }>`
		select t.id, e.detail->>'reason' as reason
		from jsonb_array_elements_text(${JSON.stringify(topUpIds)}::text::jsonb) t(id)
			join audit_event e on e.subject = t.id and e.action = ${REJECTED}
		order by e.id`;
	return new Map(rows.map(({ id, reason }) => [id, reason ?? ""]));
}
