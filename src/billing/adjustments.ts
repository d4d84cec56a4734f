import { sql } from "drizzle-orm";
import { Fault } from "../base/fault.ts";
import { newId } from "../base/id.ts";
import { onlyRow } from "../db/outage.ts";
import { faultOfSql } from "../db/sql-fault.ts";
import type { Statements } from "../db/statements.ts";
import type { Transactional } from "../db/transactional.ts";
import { formatUsd, NANO_PER_USD, type NanoUsd, nanoUsdOfColumn } from "../money/nano-usd.ts";
import type { AuditAction } from "../ops/audit-action.ts";
import { rowsOf, type Transaction } from "./stripe-books.ts";

export type AdjustmentState = "pending" | "booked" | "rejected";

export interface Adjustment {
	readonly id: string;
	readonly accountId: string;
	readonly amountNanoUsd: NanoUsd;
	readonly reason: string;
	readonly state: AdjustmentState;
	/** Operator id. */
	readonly firstBy: string;
	readonly firstAtMs: number;
}

export interface NewAdjustment {
	readonly accountId: string;
	/** Not zero; negative takes credit away. */
	readonly amount: NanoUsd;
	readonly reason: string;
	readonly idempotencyKey: string;
	readonly operatorId: string;
	/** The management key that acts for the operator, for the audit log. */
	readonly actor?: string;
	readonly ip: string | null;
}

interface Decision {
	readonly id: string;
	readonly operatorId: string;
	readonly ip: string | null;
}

/** Limit of one adjustment, against typing errors. */
const AMOUNT_USD_MAX = 100_000;
/** Pending adjustments of one operator. */
const PENDING_MAX = 50;
/** Window over which one operator's own adjustments are summed for the second-operator rule. */
const WINDOW_HOURS = 24;

/**
 * Adjusts an account's credit once per idempotency key. The adjustment waits for a second operator if its amount plus
 * what this operator booked alone in the last 24 hours is at least `secondLookFrom`. Faults: not_found; conflict if the
 * credit does not cover it, the idempotency key was used for another adjustment, or too many are pending.
 */
export async function adjust(
	db: Transactional,
	asked: NewAdjustment,
	secondLookFrom: NanoUsd | null,
): Promise<Adjustment> {
	return inTransaction(db, async (tx) => {
		// Serializes adjustments of one operator, so that concurrent ones are summed.
		await tx.execute(sql`select pg_advisory_xact_lock(hashtextextended(${`adjustments of ${asked.operatorId}`}, 0))`);
		const former = await find(tx, sql`idempotency_key = ${asked.idempotencyKey}`);
		if (former !== undefined) {
			if (isSame(former, asked)) return former;
			throw new Fault("conflict", "This adjustment was sent before, with something else in it.");
		}
		const takesTwo = secondLookFrom !== null && (await bookedAlone(tx, asked)) >= secondLookFrom;
		if (takesTwo) await checkPending(tx, asked.operatorId);
		const [row] = await rowsOf<{ id: string }>(
			tx,
			sql`insert into credit_adjustment (id, account_id, amount_nano_usd, reason, idempotency_key, state, first_by)
				select ${newId("adj")}, a.id, ${asked.amount}::bigint, ${asked.reason}, ${asked.idempotencyKey}, ${takesTwo ? "pending" : "booked"}, ${asked.operatorId}
				from account a where a.id = ${asked.accountId} returning id`,
		);
		if (row === undefined)
			throw new Fault("not_found", "There is no account {id}.", { values: { id: asked.accountId } });
		const made = (await find(tx, sql`id = ${row.id}`)) as Adjustment;
		if (!takesTwo) await book(tx, made, asked.idempotencyKey);
		await note(tx, takesTwo ? "adjustment.ask" : "account.adjust", made, asked);
		return made;
	});
}

/** `param` names the field. Fault invalid_request. */
export function checkAdjustmentAmount(amount: NanoUsd, param: string): void {
	if (amount === 0 || Math.abs(amount) > AMOUNT_USD_MAX * NANO_PER_USD)
		throw new Fault("invalid_request", "An adjustment is an amount of at most USD {most}, not zero.", {
			values: { most: AMOUNT_USD_MAX },
			param,
		});
}

/**
 * Confirms as the second operator. Faults: not_found; conflict if it was decided, is the operator's own, or is not
 * covered.
 */
export function confirmAdjustment(db: Transactional, decision: Decision): Promise<Adjustment> {
	return inTransaction(db, async (tx) => {
		const { adjustment, idempotencyKey } = await lock(tx, decision.id);
		if (adjustment.state !== "pending")
			throw new Fault("conflict", "The adjustment is {state} already.", { values: { state: adjustment.state } });
		if (adjustment.firstBy === decision.operatorId)
			throw new Fault("conflict", "A second operator must confirm this one.");
		await decide(tx, decision, "booked");
		await book(tx, adjustment, idempotencyKey);
		await note(tx, "account.adjust", adjustment, decision, { firstBy: adjustment.firstBy });
		return { ...adjustment, state: "booked" };
	});
}

/** Rejects; the requesting operator may too. Idempotent. Faults: not_found; conflict if it was booked. */
export function rejectAdjustment(db: Transactional, decision: Decision & { reason: string }): Promise<Adjustment> {
	return inTransaction(db, async (tx) => {
		const { adjustment } = await lock(tx, decision.id);
		if (adjustment.state === "booked") throw new Fault("conflict", "The adjustment is booked already.");
		if (adjustment.state === "rejected") return adjustment;
		await decide(tx, decision, "rejected");
		await note(tx, "adjustment.reject", adjustment, decision, { why: decision.reason });
		return { ...adjustment, state: "rejected" };
	});
}

/** Fault not_found. */
export async function getAdjustment(statements: Statements, id: string): Promise<Adjustment> {
	const [row] = await statements<Row>`select * from credit_adjustment where id = ${id}`;
	if (row === undefined) throw new Fault("not_found", "There is no adjustment {id}.", { values: { id } });
	return adjustmentOf(row);
}

interface Row {
	id: string;
	account_id: string;
	amount_nano_usd: string;
	reason: string;
	idempotency_key: string;
	state: AdjustmentState;
	first_by: string;
	first_at: Date | string;
}

function adjustmentOf(row: Row): Adjustment {
	return {
		id: row.id,
		accountId: row.account_id,
		amountNanoUsd: nanoUsdOfColumn(row.amount_nano_usd),
		reason: row.reason,
		state: row.state,
		firstBy: row.first_by,
		firstAtMs: new Date(row.first_at).getTime(),
	};
}

async function find(tx: Transaction, condition: ReturnType<typeof sql>): Promise<Adjustment | undefined> {
	const [row] = await rowsOf<Row>(tx, sql`select * from credit_adjustment where ${condition}`);
	return row === undefined ? undefined : adjustmentOf(row);
}

async function lock(tx: Transaction, id: string): Promise<{ adjustment: Adjustment; idempotencyKey: string }> {
	const [row] = await rowsOf<Row>(tx, sql`select * from credit_adjustment where id = ${id} for update`);
	if (row === undefined) throw new Fault("not_found", "There is no adjustment {id}.", { values: { id } });
	return { adjustment: adjustmentOf(row), idempotencyKey: row.idempotency_key };
}

function isSame(former: Adjustment, asked: NewAdjustment): boolean {
	return (
		former.accountId === asked.accountId &&
		former.amountNanoUsd === asked.amount &&
		former.reason === asked.reason &&
		former.firstBy === asked.operatorId
	);
}

/**
 * Includes the requested amount; amounts that take credit away count the same. The sum may exceed the largest amount.
 */
async function bookedAlone(tx: Transaction, { operatorId, amount }: NewAdjustment): Promise<bigint> {
	const rows = await rowsOf<{ sum: string }>(
		tx,
		sql`select coalesce(sum(abs(amount_nano_usd)), 0) as sum from credit_adjustment
			where first_by = ${operatorId} and state = 'booked' and second_by is null
				and first_at > clock_timestamp() - make_interval(hours => ${WINDOW_HOURS}::integer)`,
	);
	return BigInt(onlyRow(rows).sum) + BigInt(Math.abs(amount));
}

async function checkPending(tx: Transaction, operatorId: string): Promise<void> {
	const rows = await rowsOf<{ count: string }>(
		tx,
		sql`select count(*) as count from credit_adjustment where first_by = ${operatorId} and state = 'pending'`,
	);
	if (Number(onlyRow(rows).count) >= PENDING_MAX)
		throw new Fault("conflict", "{count} adjustments of yours wait for another operator already.", {
			values: { count: PENDING_MAX },
		});
}

async function decide(tx: Transaction, { id, operatorId }: Decision, state: AdjustmentState): Promise<void> {
	await tx.execute(sql`
		update credit_adjustment set state = ${state}, second_by = ${operatorId}, second_at = clock_timestamp() where id = ${id}`);
}

async function book(tx: Transaction, adjustment: Adjustment, idempotencyKey: string): Promise<void> {
	const { accountId, amountNanoUsd, firstBy, reason } = adjustment;
	const [row] = await rowsOf<{ seq: string | null }>(
		tx,
		sql`select ledger_book(${newId("led")}, ${accountId}, 'adjustment', ${amountNanoUsd}::bigint, ${`adjust:${idempotencyKey}`}, ${firstBy}, ${reason}, false) as seq`,
	);
	// A former version booked it without an adjustment row.
	if (row === undefined || row.seq === null)
		throw new Fault("conflict", "An adjustment was booked with this idempotency key before.");
}

async function note(
	tx: Transaction,
	action: AuditAction,
	{ id, accountId, amountNanoUsd, reason }: Adjustment,
	by: { operatorId: string; actor?: string; ip: string | null },
	more: Record<string, string> = {},
): Promise<void> {
	const detail = JSON.stringify({ usd: formatUsd(amountNanoUsd), reason, adjustment: id, ...more });
	await tx.execute(sql`
		insert into audit_event (id, actor, action, subject, account_id, ip, detail)
		values (${newId("aud")}, ${by.actor ?? by.operatorId}, ${action}, ${accountId}, ${accountId}, ${by.ip}, ${detail}::text::jsonb)`);
}

/** Drizzle wraps driver errors; errors raised by SQL functions become Faults. */
async function inTransaction<T>(db: Transactional, work: (tx: Transaction) => Promise<T>): Promise<T> {
	try {
		return await db.transaction(work);
	} catch (error) {
		if (error instanceof Fault) throw error;
		const cause = error instanceof Error && error.cause !== undefined ? error.cause : error;
		if (cause instanceof Fault) throw cause;
		throw faultOfSql(cause, "This adjustment was sent before.");
	}
}
