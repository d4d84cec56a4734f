import { type SQL, sql } from "drizzle-orm";
import { newId } from "../base/id.ts";
import type { Transactional } from "../db/transactional.ts";
import { centsOf, nanoUsdOfCents } from "../money/cents.ts";
import type { NanoUsd } from "../money/nano-usd.ts";
import { nanoUsdOfColumn } from "../money/nano-usd.ts";
import { noteFinding, settleFinding } from "./stripe-findings.ts";

/** One open transaction. */
export type Transaction = Parameters<Parameters<Transactional["transaction"]>[0]>[0];

const ACTOR = "stripe";
/** Of all that is bought here, as Stripe writes it. */
export const CURRENCY = "usd";
/**
 * topup_confirm, ledger_book: more than can be counted. The top-up is locked, and pending where it is confirmed, so it
 * says nothing else.
 */
const NO_ROOM = "TG004";
const NOT_GIVEN_BACK = "won, not given back: the account would hold more credit than can be counted";

/** A card top-up that a payment belongs to, with its account locked. */
export interface PaidTopUp {
	readonly id: string;
	readonly accountId: string;
	readonly amountNanoUsd: NanoUsd;
	/** Card payments are whole cents. */
	readonly amountCents: number;
	readonly method: string;
	/** What its movements are noted with, so that a customer knows which payment they belong to. */
	readonly reference: string;
	readonly state: string;
}

/** Rows of a statement inside the transaction. */
export async function rowsOf<Row>(tx: Transaction, query: ReturnType<typeof sql>): Promise<Row[]> {
	return (await tx.execute(query)) as unknown as Row[];
}

interface TopUpRow {
	id: string;
	account_id: string;
	amount: string;
	method: string;
	reference: string;
	state: string;
}

/** Locks top-up, account and budget, in the order that everything locks them in. */
export async function lockTopUp(tx: Transaction, id: string): Promise<PaidTopUp | undefined> {
	const [row] = await rowsOf<TopUpRow>(
		tx,
		sql`select id, account_id, amount_nano_usd as amount, method, reference, state from top_up where id = ${id} for update`,
	);
	if (row === undefined) return undefined;
	await tx.execute(sql`select 1 from account where id = ${row.account_id} for update`);
	await tx.execute(sql`select 1 from budget where id = ${row.account_id} for update`);
	const amount = nanoUsdOfColumn(row.amount);
	return {
		id: row.id,
		accountId: row.account_id,
		amountNanoUsd: amount,
		amountCents: centsOf(amount),
		method: row.method,
		reference: row.reference,
		state: row.state,
	};
}

/**
 * The money is there: whatever was thought of the top-up before, it becomes credit once. Undefined if the account's
 * unspent credit leaves no room for it: the payment stays on record, and it is tried again.
 */
export async function confirmPaid(tx: Transaction, topUp: PaidTopUp): Promise<PaidTopUp | undefined> {
	if (isCredited(topUp)) return topUp;
	const confirmed = await whereRoomIs(tx, async (part) => {
		await part.execute(
			sql`update top_up set state = 'pending', decided_at = null, decided_by = null where id = ${topUp.id} and state = 'rejected'`,
		);
		await part.execute(sql`select topup_confirm(${topUp.id}, ${ACTOR}, ${newId("led")})`);
	});
	return confirmed ? { ...topUp, state: "confirmed" } : undefined;
}

/** False, and nothing of it was done, if the account's unspent credit leaves no room for what is booked. */
async function whereRoomIs(tx: Transaction, booking: (part: Transaction) => Promise<void>): Promise<boolean> {
	try {
		await tx.transaction(booking);
		return true;
	} catch (error) {
		if (codeOf(error) === NO_ROOM) return false;
		throw error;
	}
}

/** Whether it has become credit, whatever was taken back since. */
function isCredited({ state }: Pick<PaidTopUp, "state">): boolean {
	return state !== "pending" && state !== "rejected";
}

/** Drizzle wraps what the driver throws. */
export function codeOf(error: unknown): unknown {
	const { code, cause } = error as { code?: unknown; cause?: { code?: unknown } };
	return code ?? cause?.code;
}

/** Books what a payment's refunds and disputes owe, as far as it is not booked. Locks are held by the caller. */
export async function settlePayment(tx: Transaction, paymentId: string, topUp: PaidTopUp): Promise<void> {
	// There is no credit that it could be taken from.
	if (!isCredited(topUp)) return;
	await settleRefund(tx, paymentId, topUp);
	const disputes = await rowsOf<Dispute>(
		tx,
		sql`select id, amount_cents, state, booked, suspended from stripe_dispute where payment_id = ${paymentId} order by id for update`,
	);
	for (const dispute of disputes) await settleDispute(tx, topUp, dispute);
	await setState(tx, paymentId, topUp);
}

interface Dispute {
	id: string;
	amount_cents: string;
	state: "open" | "won" | "lost";
	booked: "nothing" | "taken" | "returned";
	suspended: boolean;
}

/**
 * A refund takes what no instance holds at this moment and asks for the rest back; what it still owes is collected
 * later. So it never makes a running request's money disappear, and no account is overdrawn by it. Where nothing is held
 * there is nothing to ask for: what was spent is owed until there is credit again.
 */
async function settleRefund(tx: Transaction, paymentId: string, topUp: PaidTopUp): Promise<void> {
	const [row] = await rowsOf<{ refunded: string; booked: string; free: string; lent: boolean }>(
		tx,
		sql`select p.refunded_cents as refunded, p.booked_refund_cents as booked, b.limit_nano_usd - b.drawn_nano_usd as free,
				${isLent(sql`b.id`)} as lent
			from stripe_payment p join budget b on b.id = ${topUp.accountId} where p.id = ${paymentId} for update of p`,
	);
	if (row === undefined) return;
	const booked = Number(row.booked);
	const owed = Math.min(Number(row.refunded), topUp.amountCents) - booked;
	if (owed <= 0) return;
	const taken = Math.max(0, Math.min(owed, centsOf(nanoUsdOfColumn(row.free))));
	if (taken > 0) {
		const ref = `stripe-refund:${paymentId}:${booked + taken}`;
		await tx.execute(sql`
			select ledger_book(${newId("led")}, ${topUp.accountId}, 'refund', ${nanoUsdOfCents(-taken)}::bigint, ${ref}, ${ACTOR}, ${topUp.reference}, false)`);
		await tx.execute(
			sql`update stripe_payment set booked_refund_cents = ${booked + taken}::bigint where id = ${paymentId}`,
		);
	}
	if (taken < owed && row.lent)
		await tx.execute(sql`select control_append('budget', ${topUp.accountId}, '{"lowered": true}'::jsonb)`);
}

/** Whether an instance holds some of a budget. */
export function isLent(budgetId: SQL): SQL {
	return sql`exists (select 1 from lease l where l.budget_id = ${budgetId} and l.state = 'open')`;
}

/**
 * A dispute takes its amount at once, spent or not, and stops the account until it is decided. What one that is won gives
 * back is owed until there is room for it; the account goes on at once, since by spending it makes the room.
 */
async function settleDispute(tx: Transaction, topUp: PaidTopUp, dispute: Dispute): Promise<void> {
	const cents = Number(dispute.amount_cents);
	const book = (part: Transaction, amount: NanoUsd, ref: string) =>
		part.execute(sql`
			select ledger_book(${newId("led")}, ${topUp.accountId}, 'dispute', ${amount}::bigint, ${ref}, ${ACTOR}, ${topUp.reference}, true)`);
	if (dispute.booked === "nothing" && dispute.state !== "won") {
		await book(tx, nanoUsdOfCents(-cents), `stripe-dispute:${dispute.id}`);
		const suspended = await changeState(tx, topUp.accountId, "active", "suspended");
		await tx.execute(
			sql`update stripe_dispute set booked = 'taken', suspended = ${suspended} where id = ${dispute.id}`,
		);
	} else if (dispute.booked === "taken" && dispute.state === "won") {
		const returned = await whereRoomIs(tx, async (part) => {
			await book(part, nanoUsdOfCents(cents), `stripe-dispute:${dispute.id}:won`);
		});
		await tx.execute(
			sql`update stripe_dispute set booked = ${returned ? "returned" : "taken"}, suspended = false where id = ${dispute.id}`,
		);
		const finding = `won:${dispute.id}`;
		if (returned) await settleFinding(tx, finding, "given back");
		else
			await noteFinding(tx, {
				...{ id: finding, kind: "dispute", reason: NOT_GIVEN_BACK },
				...{ topUpId: topUp.id, amountCents: cents, currency: CURRENCY },
			});
		await passOnSuspension(tx, topUp.accountId, dispute);
	}
}

/** The account is active again unless another dispute is open or lost, which then answers for the suspension. */
async function passOnSuspension(tx: Transaction, accountId: string, dispute: Dispute): Promise<void> {
	if (!dispute.suspended) return;
	const [other] = await rowsOf<{ id: string }>(
		tx,
		sql`select d.id from stripe_dispute d join stripe_payment p on p.id = d.payment_id join top_up t on t.id = p.top_up_id
			where t.account_id = ${accountId} and d.id <> ${dispute.id} and d.booked = 'taken' and d.state <> 'won' order by d.id limit 1`,
	);
	if (other === undefined) await changeState(tx, accountId, "suspended", "active");
	else await tx.execute(sql`update stripe_dispute set suspended = true where id = ${other.id}`);
}

/** True if the account was in state `from`. */
async function changeState(tx: Transaction, accountId: string, from: string, to: string): Promise<boolean> {
	const rows = await rowsOf(
		tx,
		sql`with a as (update account set state = ${to} where id = ${accountId} and state = ${from} returning id, account_fields(account) as fields)
			select control_append('account', a.id, a.fields) from a`,
	);
	return rows.length > 0;
}

/** What the top-up is called after all that. */
async function setState(tx: Transaction, paymentId: string, topUp: PaidTopUp): Promise<void> {
	await tx.execute(sql`
		update top_up t set state = case
			when exists (select 1 from stripe_dispute d where d.payment_id = p.id and d.booked = 'taken') then 'disputed'
			when p.refunded_cents >= ${topUp.amountCents}::bigint then 'refunded' else 'confirmed' end
		from stripe_payment p where p.id = ${paymentId} and t.id = ${topUp.id} and t.state in ('confirmed', 'refunded', 'disputed')`);
}
