import { Fault } from "../base/fault.ts";
import { type RowView, type Statements, toView } from "../db/statements.ts";
import { type NanoUsd, nanoUsdOfColumn } from "../money/nano-usd.ts";
import { type AuditNote, auditNotesJson } from "../ops/audit.ts";
import type { autoTopUp } from "./auto-top-up.sql.ts";
import type { AutoTopUpStopReason } from "./stop-reasons.ts";
import { checkCardAmount, TOP_UP_NANO_USD_MIN } from "./top-ups.ts";

type Row = RowView<typeof autoTopUp, NanoUsd>;

/** Setting of an account: threshold, amount, and limit per calendar month in its time zone. */
export type AutoTopUpAmounts = Pick<Row, "belowNanoUsd" | "amountNanoUsd" | "monthMostNanoUsd">;

export interface AutoTopUp extends AutoTopUpAmounts, Pick<Row, "state" | "changedAtMs"> {
	readonly reason: AutoTopUpStopReason | null;
}

export interface AutoAttempt {
	readonly id: string;
	readonly topUpId: string;
	readonly amountNanoUsd: NanoUsd;
	readonly state: "running" | "needs_authentication" | "succeeded" | "declined" | "ended";
	readonly reason: AutoTopUpStopReason | null;
	readonly begunAtMs: number;
}

const ATTEMPTS_SHOWN = 5;
/** Rows per statement, followed by statements per call. The next call continues. */
const NOTES_MAX = 500;
const SORTS_MAX = 20;

/** The account's setting; null if automatic top-ups are off. */
export async function readAutoTopUp(statements: Statements, accountId: string): Promise<AutoTopUp | null> {
	const [row] = await statements<object>`
		select below_nano_usd, amount_nano_usd, month_most_nano_usd, state, reason, changed_at from auto_top_up where account_id = ${accountId}`;
	return row === undefined ? null : toView<AutoTopUp>(row);
}

/** The newest attempts, and the sum that this month's attempts have bought or may still buy. */
export async function readAutoAttempts(statements: Statements, accountId: string) {
	const [rows, [month]] = await Promise.all([
		statements<object>`
			select id, top_up_id, amount_nano_usd, begun_at,
				case when state in ('begun', 'sent', 'unknown') then 'running' else state end as state,
				case when exists (select 1 from stripe_finding f where f.id = 'open:' || a.id and f.resolved_at is null) then 'undecided' else reason end as reason
			from auto_top_up_attempt a where account_id = ${accountId} order by begun_at desc limit ${ATTEMPTS_SHOWN}`,
		statements<{ bought: string }>`
			select auto_top_up_bought(a.id, a.time_zone) as bought from account a where a.id = ${accountId}`,
	]);
	return { attempts: rows.map(toView<AutoAttempt>), boughtNanoUsd: nanoUsdOfColumn(month?.bought ?? 0) };
}

/**
 * Switches automatic top-ups on and checks the account at once. An attempt in progress continues, except that a payment
 * that waits for its owner is cancelled. Faults: invalid_request, naming the amount; conflict without a saved card.
 */
export async function saveAutoTopUp(
	statements: Statements,
	accountId: string,
	amounts: AutoTopUpAmounts,
	act?: AuditNote,
) {
	checkAmounts(amounts);
	const { belowNanoUsd, amountNanoUsd, monthMostNanoUsd } = amounts;
	const rows = await statements`
		with saved as (
			insert into auto_top_up as s (account_id, below_nano_usd, amount_nano_usd, month_most_nano_usd, state)
			select c.account_id, ${belowNanoUsd}::bigint, ${amountNanoUsd}::bigint, ${monthMostNanoUsd}::bigint, 'on' from saved_card c
			where c.account_id = ${accountId} and c.payment_method_id is not null
			on conflict (account_id) do update set below_nano_usd = excluded.below_nano_usd, amount_nano_usd = excluded.amount_nano_usd,
				month_most_nano_usd = excluded.month_most_nano_usd, state = 'on', reason = null, changed_at = clock_timestamp(), look_at = null, tell = null
			returning account_id
		), woken as (
			update auto_top_up_attempt a set look_at = now() from saved s where a.account_id = s.account_id and a.state = 'needs_authentication'
		), touched as (
			insert into auto_top_up_touched (account_id) select account_id from saved
		)
		select audit_note(${auditNotesJson(act)}::text::jsonb, account_id, account_id) from saved`;
	if (rows.length === 0) throw new Fault("conflict", "Save a card first.");
}

/** Switches automatic top-ups off. An attempt in progress continues. False if they were off already. */
export async function switchOffAutoTopUp(statements: Statements, accountId: string, act?: AuditNote): Promise<boolean> {
	const rows = await statements`
		with off as (
			delete from auto_top_up where account_id = ${accountId} returning account_id
		), woken as (
			update auto_top_up_attempt a set look_at = now() from off o where a.account_id = o.account_id and a.state = 'needs_authentication'
		)
		select audit_note(${auditNotesJson(act)}::text::jsonb, account_id, account_id) from off`;
	return rows.length > 0;
}

/**
 * Schedules a check of accounts whose credit is below their threshold. Also runs if card payments are not configured,
 * so that rows of `auto_top_up_touched` do not accumulate.
 */
export async function scheduleAutoTopUpChecks(statements: Statements): Promise<void> {
	for (let sorts = 0; sorts < SORTS_MAX; sorts++) {
		const [row] = await statements<{ seen: number }>`select auto_top_up_sort(${NOTES_MAX}) as seen`;
		if ((row?.seen ?? 0) < NOTES_MAX) return;
	}
}

function checkAmounts({ belowNanoUsd, amountNanoUsd, monthMostNanoUsd }: AutoTopUpAmounts): void {
	const refuse = (param: string, message: string) => {
		throw new Fault("invalid_request", message, { param });
	};
	if (belowNanoUsd <= 0) refuse("belowUsd", "The threshold must be more than USD 0.");
	if (amountNanoUsd < TOP_UP_NANO_USD_MIN) refuse("amountUsd", "A top-up is at least USD 100.");
	checkCardAmount(amountNanoUsd, "amountUsd");
	// The amount must be at least the threshold, so that one payment lifts the credit above it.
	if (amountNanoUsd < belowNanoUsd) refuse("amountUsd", "The top-up amount must be at least the balance threshold.");
	if (monthMostNanoUsd < amountNanoUsd) refuse("monthMostUsd", "The monthly limit must cover at least one top-up.");
}
