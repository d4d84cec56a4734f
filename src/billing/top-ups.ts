import { Fault } from "../base/fault.ts";
import { newId } from "../base/id.ts";
import { onlyRow } from "../db/outage.ts";
import { type ListPage, type PageQuery, pageBounds, toPageById } from "../db/page.ts";
import { faultOfSql, type RowView, type Statements, throwFault, toView } from "../db/statements.ts";
import { isLabel } from "../keys/key-settings.ts";
import { isWholeCents, NANO_PER_USD, type NanoUsd, nanoUsd, nanoUsdOfCents } from "../money/nano-usd.ts";
import { type AuditNote, auditNotesJson } from "../ops/audit.ts";
import type { topUp } from "./top-up.sql.ts";

/** No letters that look like digits, because people type the reference into their bank's form. */
const REFERENCE_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const REFERENCE_CHARS = 10;

/** Creates a payment reference such as `TU-XXXXX-XXXXX`. */
export function newPaymentReference(): string {
	const random = crypto.getRandomValues(new Uint8Array(REFERENCE_CHARS));
	const text = [...random].map((byte) => REFERENCE_ALPHABET.charAt(byte % 32)).join("");
	return `TU-${text.slice(0, 5)}-${text.slice(5)}`;
}

export type TopUpRecord = RowView<typeof topUp, NanoUsd>;
export type TopUpState = TopUpRecord["state"];
export const TOP_UP_STATES = ["pending", "confirmed", "rejected", "refunded", "disputed"] as const;

interface NewTopUp extends Pick<TopUpRecord, "accountId" | "amountNanoUsd" | "method" | "reference"> {
	/** Maximum number of pending top-ups that the account may have; absent: no limit. */
	readonly pendingMost?: number;
}

export const TOP_UP_NANO_USD_MIN = nanoUsd(100 * NANO_PER_USD);
/** Largest top-up. It keeps sums within the range of amounts, and stops typing errors. */
export const TOP_UP_NANO_USD_MAX = nanoUsd(1_000_000 * NANO_PER_USD);
/** Largest card payment, because Stripe's amounts have at most eight digits of cents. */
export const CARD_NANO_USD_MAX = nanoUsdOfCents(99_999_999);
const REFERENCE_CHARS_MAX = 200;

/** Returns the amount if a card can pay it. Otherwise throws Fault invalid_request, naming `param`. */
export function checkCardAmount(amount: NanoUsd, param: string): NanoUsd {
	if (!isWholeCents(amount))
		throw new Fault("invalid_request", "A card payment must be a whole number of cents.", { param });
	if (amount > CARD_NANO_USD_MAX)
		throw new Fault("invalid_request", "A card payment is at most USD 999999.99.", { param });
	return amount;
}

/**
 * Records an expected payment, which is credited when it is confirmed. A repeated call with the same `id` adds none.
 * Faults: invalid_request (amount, reference), not_found (account), conflict (reference in use, too many pending).
 */
export async function createTopUp(
	statements: Statements,
	topUp: NewTopUp,
	id: string = newId("top"),
	act?: AuditNote,
): Promise<{ id: string; state: "pending" }> {
	const { accountId, amountNanoUsd, method, reference, pendingMost = null } = topUp;
	if (amountNanoUsd < TOP_UP_NANO_USD_MIN)
		throw new Fault("invalid_request", "A top-up is at least USD 100.", { param: "usd" });
	if (amountNanoUsd > TOP_UP_NANO_USD_MAX)
		throw new Fault("invalid_request", "A top-up is at most USD 1000000.", { param: "usd" });
	if (!isLabel(reference, REFERENCE_CHARS_MAX)) {
		throw new Fault("invalid_request", "A reference must be one line of 1 to {count} characters.", {
			values: { count: REFERENCE_CHARS_MAX },
			param: "reference",
		});
	}
	try {
		await statements`
			select audit_note(${auditNotesJson(act)}::text::jsonb, ${id}, ${accountId})
			from topup_expect(${id}, ${accountId}, ${amountNanoUsd}::bigint, ${method}, ${reference}, ${pendingMost}::integer) as made where made`;
	} catch (error) {
		throw faultOfSql(error, "A top-up with this reference already exists.");
	}
	return { id, state: "pending" };
}

/**
 * Credits a verified payment once. `seq`: number of its control entry; null if it was confirmed before. Faults:
 * not_found; conflict if it was rejected, refunded or disputed.
 */
export async function confirmTopUp(
	statements: Statements,
	id: string,
	actor: string,
): Promise<{ id: string; state: "confirmed"; seq: number | null }> {
	const rows = await statements<{
		seq: string | null;
	}>`select topup_confirm(${id}, ${actor}, ${newId("led")}) as seq`.catch(throwFault);
	const { seq } = onlyRow(rows);
	return { id, state: "confirmed", seq: seq === null ? null : Number(seq) };
}

/** Rejects a top-up whose payment did not arrive. Idempotent. Faults: not_found; conflict if it was confirmed. */
export async function rejectTopUp(statements: Statements, id: string, actor: string, act?: AuditNote) {
	await statements`
		with rejected as (
			update top_up set state = 'rejected', decided_at = clock_timestamp(), decided_by = ${actor}
			where id = ${id} and state = 'pending' returning id, account_id
		)
		select audit_note(${auditNotesJson(act)}::text::jsonb, id, account_id) from rejected`;
	const topUp = await getTopUp(statements, id);
	if (topUp.state === "rejected") return topUp;
	throw new Fault("conflict", "The top-up is {state}: it cannot be rejected.", { values: { state: topUp.state } });
}

export async function getTopUp(statements: Statements, id: string): Promise<TopUpRecord> {
	const [row] = await statements<object>`select * from top_up where id = ${id}`;
	if (row === undefined) throw new Fault("not_found", "There is no top-up {id}.", { values: { id } });
	return toView<TopUpRecord>(row);
}

/** Lists top-ups, newest first; by default of all accounts and in all states. */
export async function listTopUps(
	statements: Statements,
	filter: { state?: TopUpState; accountId?: string } = {},
	page: PageQuery = {},
): Promise<ListPage<TopUpRecord>> {
	const { shown, asked, after } = pageBounds(page);
	const rows = await statements<object>`
		select * from top_up
		where (${filter.state ?? null}::text is null or state = ${filter.state ?? null}::text)
			and (${filter.accountId ?? null}::text is null or account_id = ${filter.accountId ?? null}::text)
			and (${after}::text is null or id < ${after}::text)
		order by id desc limit ${asked}`;
	return toPageById(rows.map(toView<TopUpRecord>), shown);
}
