import { sql } from "drizzle-orm";
import { Fault } from "../base/fault.ts";
import { newId } from "../base/id.ts";
import { parseIsoMs } from "../base/iso-date.ts";
import { onlyRow } from "../db/outage.ts";
import { type RowView, type Statements, toView } from "../db/statements.ts";
import type { Transactional } from "../db/transactional.ts";
import { formatUsd, NANO_PER_USD, type NanoUsd, nanoUsd } from "../money/nano-usd.ts";
import { auditNote, auditNotesJson } from "../ops/audit.ts";
import type { AuditAction } from "../ops/audit-action.ts";
import type { creditAdjustment } from "./adjustment.sql.ts";
import { type AskedPrice, applyAgreement, writtenTerms } from "./price-agreements.ts";
import { inTransaction, statementsIn, type Transaction } from "./stripe-books.ts";

export type Adjustment = RowView<typeof creditAdjustment, NanoUsd>;
export type AdjustmentState = Adjustment["state"];

interface NewAdjustment extends Pick<Adjustment, "accountId" | "reason" | "idempotencyKey"> {
	/** Not zero; negative if the adjustment removes credit. */
	readonly amount: NanoUsd;
	/** Promotional credit until the last day (UTC); null: it does not expire. Undefined: an ordinary adjustment. */
	readonly promotion?: { readonly lastDay: string | null } | undefined;
	/** Prices instead of credit; the amount is then 0. */
	readonly price?: AskedPrice | undefined;
	readonly operatorId: string;
	/** Management key that acted for the operator, for the audit log. */
	readonly actor?: string;
	readonly ip: string | null;
}

interface Decision {
	readonly id: string;
	readonly operatorId: string;
	readonly ip: string | null;
}

/** Largest adjustment in USD, which stops typing errors. */
const AMOUNT_USD_MAX = 100_000;
/** Maximum number of pending adjustments that one operator may have. */
const PENDING_MAX = 50;
/** Hours over which an operator's unconfirmed adjustments are summed, to see whether a second operator must confirm. */
const WINDOW_HOURS = 24;
const DAY_MS = 24 * 3_600_000;
/** Maximum number of expired grants that one run takes back. The next run takes others, in random order. */
const ENDED_AT_ONCE_MAX = 100;
const SENT_BEFORE = "This adjustment was already sent.";

/**
 * Adjusts an account's credit or prices, once per idempotency key. A second operator must confirm if the amount plus
 * what this operator booked alone in the last 24 hours, or the prices' distance from the list, is at least
 * `secondLookFrom`. Faults: not_found; conflict if the credit does not cover it, the key was used for another
 * adjustment, or too many are pending or in force.
 */
export async function bookAdjustment(db: Transactional, asked: NewAdjustment, secondLookFrom: number | null) {
	return inTransaction(db, SENT_BEFORE, async (tx) => {
		// Lets one adjustment of an operator run at a time, so that concurrent ones are included in the sum.
		await statementsIn(tx)`
			select pg_advisory_xact_lock(hashtextextended(${`adjustments of ${asked.operatorId}`}, 0))`;
		const former = await lock(tx, sql`idempotency_key = ${asked.idempotencyKey}`);
		if (former !== undefined) {
			if (isSame(former, asked)) return former;
			throw new Fault("conflict", "This idempotency key was already used for another adjustment.");
		}
		const weight = asked.price?.distance ?? (await bookedAlone(tx, asked));
		const takesTwo = secondLookFrom !== null && weight >= secondLookFrom;
		if (takesTwo) await checkPending(tx, asked.operatorId);
		const [row] = await statementsIn(tx)<{ id: string }>`
			insert into credit_adjustment (id, account_id, kind, last_day, terms, amount_nano_usd, reason, idempotency_key, state, first_by)
			select ${newId("adj")}, a.id, ${kindOf(asked)}, ${asked.promotion?.lastDay ?? null}::date,
				${asked.price ? JSON.stringify(asked.price.terms) : null}::text::jsonb, ${asked.amount}::bigint, ${asked.reason},
				${asked.idempotencyKey}, ${takesTwo ? "pending" : "booked"}, ${asked.operatorId}
			from account a where a.id = ${asked.accountId} returning id`;
		if (row === undefined)
			throw new Fault("not_found", "There is no account {id}.", { values: { id: asked.accountId } });
		const made = await lockKnown(tx, row.id);
		if (!takesTwo) await book(tx, made);
		await note(tx, takesTwo ? "adjustment.ask" : actionOf(made), made, asked);
		return made;
	});
}

/** Checks amount and last day of an adjustment. `params` names the fields for the Fault invalid_request. */
export function checkAdjustment(
	{ amount, promotion }: Pick<NewAdjustment, "amount" | "promotion">,
	params: { readonly amount: string; readonly lastDay: string },
	nowMs: number,
): void {
	if (amount === 0 || Math.abs(amount) > AMOUNT_USD_MAX * NANO_PER_USD)
		throw new Fault("invalid_request", "An adjustment must be at most USD {most} and not zero.", {
			values: { most: AMOUNT_USD_MAX },
			param: params.amount,
		});
	const lastDay = promotion?.lastDay ?? null;
	if (lastDay === null) return;
	if (amount < 0)
		throw new Fault("invalid_request", "Promotional credit that is removed cannot have a last day.", {
			param: params.lastDay,
		});
	const startMs = /^\d{4}-\d\d-\d\d$/.test(lastDay) ? parseIsoMs(lastDay) : undefined;
	if (startMs === undefined || startMs + DAY_MS <= nowMs)
		throw new Fault("invalid_request", "The last day must be today or later, such as 2027-01-31.", {
			param: params.lastDay,
		});
}

/**
 * Confirms an adjustment as the second operator. Faults: not_found; conflict if it was decided before, was requested by
 * the same operator, or the credit does not cover it.
 */
export function confirmAdjustment(db: Transactional, decision: Decision): Promise<Adjustment> {
	return inTransaction(db, SENT_BEFORE, async (tx) => {
		const adjustment = await lockKnown(tx, decision.id);
		if (adjustment.state !== "pending")
			throw new Fault("conflict", "The adjustment is already {state}.", { values: { state: adjustment.state } });
		if (adjustment.firstBy === decision.operatorId)
			throw new Fault("conflict", "A second operator must confirm this adjustment.");
		await decide(tx, decision, "booked");
		await book(tx, adjustment);
		await note(tx, actionOf(adjustment), adjustment, decision, { firstBy: adjustment.firstBy });
		return { ...adjustment, state: "booked" };
	});
}

/** Rejects an adjustment, also by its own operator. Idempotent. Faults: not_found; conflict if it was booked. */
export function rejectAdjustment(db: Transactional, decision: Decision & { reason: string }): Promise<Adjustment> {
	return inTransaction(db, SENT_BEFORE, async (tx) => {
		const adjustment = await lockKnown(tx, decision.id);
		if (adjustment.state === "booked") throw new Fault("conflict", "The adjustment is already booked.");
		if (adjustment.state === "rejected") return adjustment;
		await decide(tx, decision, "rejected");
		await note(tx, "adjustment.reject", adjustment, decision, { why: decision.reason });
		return { ...adjustment, state: "rejected" };
	});
}

export async function getAdjustment(statements: Statements, id: string): Promise<Adjustment> {
	const [row] = await statements<object>`select *, last_day::text from credit_adjustment where id = ${id}`;
	return toView<Adjustment>(known(row, id));
}

/** Takes back promotional credit after its last day. Credit that running requests hold is taken back by a later run. */
export async function takeBackEndedPromotions(statements: Statements): Promise<void> {
	const ended = await statements<{ seq: string }>`
		select p.seq from promotion p where p.left_nano_usd > 0 and p.last_day < (now() at time zone 'UTC')::date
		order by random() limit ${ENDED_AT_ONCE_MAX}`;
	for (const { seq } of ended) await statements`select promotion_end(${seq}::bigint, ${newId("adj")}, ${newId("led")})`;
}

async function lock(tx: Transaction, condition: ReturnType<typeof sql>): Promise<Adjustment | undefined> {
	const [row] = await statementsIn(tx)<object>`select * from credit_adjustment where ${condition} for update`;
	return row && toView<Adjustment>(row);
}

const lockKnown = async (tx: Transaction, id: string) => known(await lock(tx, sql`id = ${id}`), id);

function known<T>(found: T | undefined, id: string): T {
	if (found === undefined) throw new Fault("not_found", "There is no adjustment {id}.", { values: { id } });
	return found;
}

const kindOf = ({ promotion, price }: NewAdjustment): Adjustment["kind"] =>
	price !== undefined ? "price" : promotion === undefined ? "adjustment" : "promotion";

const actionOf = ({ kind }: Adjustment): AuditAction => (kind === "price" ? "account.price" : "account.adjust");

function isSame(former: Adjustment, asked: NewAdjustment): boolean {
	return (
		former.kind === kindOf(asked) &&
		former.lastDay === (asked.promotion?.lastDay ?? null) &&
		former.accountId === asked.accountId &&
		former.amountNanoUsd === asked.amount &&
		Bun.deepEquals(former.terms, asked.price?.terms ?? null) &&
		former.reason === asked.reason &&
		former.firstBy === asked.operatorId
	);
}

/**
 * Sum of what the operator booked alone within WINDOW_HOURS, including this request. Removed credit counts like added
 * credit. A bigint, because the sum may exceed the largest amount.
 */
async function bookedAlone(tx: Transaction, { operatorId, amount }: NewAdjustment): Promise<bigint> {
	const rows = await statementsIn(tx)<{ sum: string }>`
		select coalesce(sum(abs(amount_nano_usd)), 0) as sum from credit_adjustment
		where first_by = ${operatorId} and state = 'booked' and second_by is null
			and first_at > clock_timestamp() - make_interval(hours => ${WINDOW_HOURS}::integer)`;
	return BigInt(onlyRow(rows).sum) + BigInt(Math.abs(amount));
}

async function checkPending(tx: Transaction, operatorId: string): Promise<void> {
	const rows = await statementsIn(tx)<{ count: string }>`
		select count(*) as count from credit_adjustment where first_by = ${operatorId} and state = 'pending'`;
	if (Number(onlyRow(rows).count) >= PENDING_MAX)
		throw new Fault("conflict", "You already have {count} adjustments waiting for a second operator.", {
			values: { count: PENDING_MAX },
		});
}

async function decide(tx: Transaction, { id, operatorId }: Decision, state: AdjustmentState): Promise<void> {
	await statementsIn(tx)`
		update credit_adjustment set state = ${state}, second_by = ${operatorId}, second_at = clock_timestamp() where id = ${id}`;
}

async function book(tx: Transaction, adjustment: Adjustment) {
	if (adjustment.terms !== null)
		return applyAgreement(tx, adjustment.accountId, { ...adjustment.terms, id: adjustment.id });
	const { id, accountId, kind, lastDay, amountNanoUsd, firstBy, reason } = adjustment;
	const [entry, amount, source] = [newId("led"), nanoUsd(amountNanoUsd), `adjust:${adjustment.idempotencyKey}`];
	const booking =
		kind === "promotion"
			? sql`promotion_give(${entry}, ${accountId}, ${amount}::bigint, ${source}, ${firstBy}, ${reason}, ${id}, ${lastDay}::date)`
			: sql`ledger_book(${entry}, ${accountId}, 'adjustment', ${amount}::bigint, ${source}, ${firstBy}, ${reason}, false)`;
	const rows = await statementsIn(tx)<{ seq: string | null }>`select ${booking} as seq`;
	if (onlyRow(rows).seq === null) throw new Fault("conflict", SENT_BEFORE);
	if (kind === "adjustment" && amount < 0) await checkOrdinary(tx, accountId);
}

/** Refuses to remove promotional credit: the grant's end would take it once more, from a top-up. */
async function checkOrdinary(tx: Transaction, accountId: string): Promise<void> {
	const rows = await statementsIn(tx)<{ covered: boolean }>`
		select g.limit_nano_usd - s.spent >= coalesce((select sum(l.left_nano_usd) from promotion_left(g.id, s.spent) l), 0) as covered
		from budget g, budget_spent(g.id) as s(spent) where g.id = ${accountId}`;
	if (!onlyRow(rows).covered)
		throw new Fault("conflict", "This exceeds paid credit. Remove promotional credit by an adjustment of that type.");
}

async function note(
	tx: Transaction,
	action: AuditAction,
	{ id, accountId, kind, lastDay, terms, amountNanoUsd, reason }: Adjustment,
	by: { operatorId: string; actor?: string; ip: string | null },
	more: Record<string, string> = {},
): Promise<void> {
	const what = terms === null ? { usd: formatUsd(amountNanoUsd) } : writtenTerms(terms);
	const promotion = kind === "promotion" ? { kind, lastDay } : {};
	const detail = { ...what, ...promotion, reason, adjustment: id, ...more };
	const act = auditNote({ actor: by.actor ?? by.operatorId, action, ip: by.ip, detail });
	await statementsIn(tx)`select audit_note(${auditNotesJson(act)}::text::jsonb, ${accountId}, ${accountId})`;
}
