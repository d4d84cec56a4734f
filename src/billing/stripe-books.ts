import { type SQL, sql } from "drizzle-orm";
import { Fault } from "../base/fault.ts";
import { newId } from "../base/id.ts";
import { faultOfSql, toView } from "../db/statements.ts";
import type { Transactional } from "../db/transactional.ts";
import { centsRoundedDown, type NanoUsd, nanoUsd, nanoUsdOfCents, nanoUsdOfColumn } from "../money/nano-usd.ts";
import { recordFinding, resolveFinding } from "./stripe-findings.ts";
import type { TopUpRecord } from "./top-ups.ts";

export type Transaction = Parameters<Parameters<Transactional["transaction"]>[0]>[0];

const ACTOR = "stripe";
/** Currency of all payments, in Stripe's spelling. */
export const CURRENCY = "usd";
/** SQLSTATE that topup_confirm and ledger_book raise if the account's credit would exceed the largest amount. */
const NO_ROOM = "TG004";
const NOT_GIVEN_BACK = "won, not given back: the account would hold more credit than can be counted";

/** The card top-up of a payment. The caller has locked its account. */
export interface PaidTopUp
	extends Pick<TopUpRecord, "id" | "accountId" | "amountNanoUsd" | "method" | "reference" | "state"> {
	/** Whole US cents, like all amounts of cards. */
	readonly amountCents: number;
}

/** The statements of a transaction: `` statementsIn(tx)<Row>`select …` `` returns rows. */
export const statementsIn =
	(tx: Pick<Transactional, "execute">) =>
	async <Row>(text: TemplateStringsArray, ...values: unknown[]) =>
		(await tx.execute(sql(text, ...values))) as unknown as Row[];

/** Runs a transaction; expected database errors become Faults. `taken`: text of the conflict for a unique violation. */
export async function inTransaction<T>(db: Transactional, taken: string, work: (tx: Transaction) => Promise<T>) {
	try {
		return await db.transaction(work);
	} catch (error) {
		// Drizzle wraps the driver's errors, so their cause is used.
		const cause = error instanceof Fault ? error : ((error as Error).cause ?? error);
		throw cause instanceof Fault ? cause : faultOfSql(cause, taken);
	}
}

/** Locks top-up, account and budget, in the order that all transactions use. */
export async function lockTopUp(tx: Transaction, id: string): Promise<PaidTopUp | undefined> {
	const [row] = await statementsIn(tx)<object>`
		select id, account_id, amount_nano_usd, method, reference, state from top_up where id = ${id} for update`;
	if (row === undefined) return undefined;
	const topUp = toView<Omit<PaidTopUp, "amountCents">>(row);
	await statementsIn(tx)`select 1 from account where id = ${topUp.accountId} for update`;
	await statementsIn(tx)`select 1 from budget where id = ${topUp.accountId} for update`;
	return { ...topUp, amountCents: centsRoundedDown(nanoUsd(topUp.amountNanoUsd)) };
}

/**
 * Confirms the top-up once, whatever its state. Undefined if the credit would exceed the largest amount: the payment
 * stays recorded, and crediting is tried again later.
 */
export async function confirmPaidTopUp(tx: Transaction, topUp: PaidTopUp): Promise<PaidTopUp | undefined> {
	if (isCredited(topUp)) return topUp;
	const confirmed = await whereRoomIs(tx, async (part) => {
		await statementsIn(part)`
			update top_up set state = 'pending', decided_at = null, decided_by = null where id = ${topUp.id} and state = 'rejected'`;
		await statementsIn(part)`select topup_confirm(${topUp.id}, ${ACTOR}, ${newId("led")})`;
	});
	return confirmed ? { ...topUp, state: "confirmed" } : undefined;
}

/** Runs `booking`. False, with nothing booked, if the account's credit would exceed the largest amount. */
async function whereRoomIs(tx: Transaction, booking: (part: Transaction) => Promise<void>): Promise<boolean> {
	try {
		await tx.transaction(booking);
		return true;
	} catch (error) {
		if (errorSqlState(error) === NO_ROOM) return false;
		throw error;
	}
}

/** True if the payment was credited, even if it was refunded afterwards. */
const isCredited = ({ state }: Pick<PaidTopUp, "state">): boolean => state !== "pending" && state !== "rejected";

/** SQLSTATE code of an error, or of its cause, because drizzle wraps the driver's errors. */
export function errorSqlState(error: unknown): unknown {
	const { code, cause } = error as { code?: unknown; cause?: { code?: unknown } };
	return code ?? cause?.code;
}

/** Books what the account owes for refunds and disputes of a payment. The caller holds the locks of `lockTopUp`. */
export async function settlePayment(tx: Transaction, paymentId: string, topUp: PaidTopUp): Promise<void> {
	// If the payment was never credited, there is nothing to take back.
	if (!isCredited(topUp)) return;
	await settleRefund(tx, paymentId, topUp);
	const disputes = await statementsIn(tx)<Dispute>`
		select id, amount_cents, state, booked, suspended from stripe_dispute where payment_id = ${paymentId} order by id for update`;
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
 * Takes back refunded credit that no instance holds, and recalls the rest: a refund never takes credit from a running
 * request. Recalled credit is collected later. An account is never overdrawn; spent credit is owed until there is new
 * credit.
 */
async function settleRefund(tx: Transaction, paymentId: string, topUp: PaidTopUp): Promise<void> {
	const [row] = await statementsIn(tx)<{ refunded: string; booked: string; free: string; lent: boolean }>`
		select p.refunded_cents as refunded, p.booked_refund_cents as booked, b.limit_nano_usd - b.drawn_nano_usd as free,
			${hasOpenLease(sql`b.id`)} as lent
		from stripe_payment p join budget b on b.id = ${topUp.accountId} where p.id = ${paymentId} for update of p`;
	if (row === undefined) return;
	const booked = Number(row.booked);
	const owed = Math.min(Number(row.refunded), topUp.amountCents) - booked;
	if (owed <= 0) return;
	const taken = Math.max(0, Math.min(owed, centsRoundedDown(nanoUsdOfColumn(row.free))));
	if (taken > 0) {
		const ref = `stripe-refund:${paymentId}:${booked + taken}`;
		await statementsIn(tx)`
			select ledger_book(${newId("led")}, ${topUp.accountId}, 'refund', ${nanoUsdOfCents(-taken)}::bigint, ${ref}, ${ACTOR}, ${topUp.reference}, false)`;
		await statementsIn(tx)`
			update stripe_payment set booked_refund_cents = ${booked + taken}::bigint where id = ${paymentId}`;
	}
	if (taken < owed && row.lent)
		await statementsIn(tx)`select control_append('budget', ${topUp.accountId}, '{"lowered": true}'::jsonb)`;
}

export function hasOpenLease(budgetId: SQL): SQL {
	return sql`exists (select 1 from lease l where l.budget_id = ${budgetId} and l.state = 'open')`;
}

/**
 * A dispute takes its amount at once, even if it was spent, and suspends the account until Stripe's decision. If the
 * dispute is won, the account becomes active at once, and gets the amount back as soon as its credit allows.
 */
async function settleDispute(tx: Transaction, topUp: PaidTopUp, dispute: Dispute): Promise<void> {
	const cents = Number(dispute.amount_cents);
	const book = (part: Transaction, amount: NanoUsd, ref: string) =>
		statementsIn(part)`
			select ledger_book(${newId("led")}, ${topUp.accountId}, 'dispute', ${amount}::bigint, ${ref}, ${ACTOR}, ${topUp.reference}, true)`;
	if (dispute.booked === "nothing" && dispute.state !== "won") {
		await book(tx, nanoUsdOfCents(-cents), `stripe-dispute:${dispute.id}`);
		const suspended = await changeState(tx, topUp.accountId, "active", "suspended");
		await statementsIn(tx)`
			update stripe_dispute set booked = 'taken', suspended = ${suspended} where id = ${dispute.id}`;
	} else if (dispute.booked === "taken" && dispute.state === "won") {
		const returned = await whereRoomIs(tx, async (part) => {
			await book(part, nanoUsdOfCents(cents), `stripe-dispute:${dispute.id}:won`);
		});
		await statementsIn(tx)`
			update stripe_dispute set booked = ${returned ? "returned" : "taken"}, suspended = false where id = ${dispute.id}`;
		const finding = `won:${dispute.id}`;
		if (returned) await resolveFinding(tx, finding, "given back");
		else
			await recordFinding(tx, {
				...{ id: finding, kind: "dispute", reason: NOT_GIVEN_BACK },
				...{ topUpId: topUp.id, amountCents: cents, currency: CURRENCY },
			});
		await passOnSuspension(tx, topUp.accountId, dispute);
	}
}

/** Makes the account active again, unless another dispute is open or lost, which then keeps the account suspended. */
async function passOnSuspension(tx: Transaction, accountId: string, dispute: Dispute): Promise<void> {
	if (!dispute.suspended) return;
	const [other] = await statementsIn(tx)<{ id: string }>`
		select d.id from stripe_dispute d join stripe_payment p on p.id = d.payment_id join top_up t on t.id = p.top_up_id
		where t.account_id = ${accountId} and d.id <> ${dispute.id} and d.booked = 'taken' and d.state <> 'won' order by d.id limit 1`;
	if (other === undefined) await changeState(tx, accountId, "suspended", "active");
	else await statementsIn(tx)`update stripe_dispute set suspended = true where id = ${other.id}`;
}

/** Changes the account's state from `from` to `to`; true if it was in state `from`. */
async function changeState(tx: Transaction, accountId: string, from: string, to: string): Promise<boolean> {
	const rows = await statementsIn(tx)`
		with a as (update account set state = ${to} where id = ${accountId} and state = ${from} returning id, account_fields(account) as fields)
		select control_append('account', a.id, a.fields) from a`;
	return rows.length > 0;
}

/** Sets the top-up's state according to all its refunds and disputes. */
async function setState(tx: Transaction, paymentId: string, topUp: PaidTopUp): Promise<void> {
	await statementsIn(tx)`
		update top_up t set state = case
			when exists (select 1 from stripe_dispute d where d.payment_id = p.id and d.booked = 'taken') then 'disputed'
			when p.refunded_cents >= ${topUp.amountCents}::bigint then 'refunded' else 'confirmed' end
		from stripe_payment p where p.id = ${paymentId} and t.id = ${topUp.id} and t.state in ('confirmed', 'refunded', 'disputed')`;
}
