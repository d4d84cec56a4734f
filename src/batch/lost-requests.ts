import { newId } from "../base/id.ts";
import type { Log } from "../base/log.ts";
import { BATCH_ROWS, deleteInBatches, type Statements } from "../db/statements.ts";
import { addUsd, type NanoUsd, nanoUsdOfColumn, ZERO_USD } from "../money/nano-usd.ts";

/** Maximum number of requests that one statement refunds. */
const CREDITED_MAX = 500;
/** SQLSTATE of `ledger_book`: the account's credit would exceed the largest amount. */
const NO_ROOM = "TG004";
/** After this many days, a request without a usage record counts as never sent: a lost journal is replayed sooner. */
const KEPT_DAYS = 90;

/**
 * Refunds interrupted requests of batch lines, because the line's next request is charged too. Each is refunded once,
 * when its usage record exists. If the account's credit would exceed the largest amount, the next call tries again. A
 * job of the console. Returns the sum.
 */
export async function refundLostRequests(statements: Statements, log: Log): Promise<NanoUsd> {
	let sum = ZERO_USD;
	const full = new Set<string>();
	for (;;) {
		const settled = await statements<{ id: string; account: string }>`
			select l.request_id as id, l.account_id as account from batch_lost_request l join usage_event u on u.request_id = l.request_id
			where l.account_id <> all (string_to_array(${[...full].join(" ")}, ' ')) order by l.lost_at limit ${CREDITED_MAX}`;
		for (const { id, account } of settled) {
			if (full.has(account)) continue;
			try {
				const [row] = await statements<{ charged: string | null }>`
					select batch_credit_lost(${id}::uuid, ${newId("led")}) as charged`;
				sum = addUsd(sum, nanoUsdOfColumn(row?.charged ?? 0));
			} catch (error) {
				if ((error as { code?: unknown }).code !== NO_ROOM) throw error;
				log.warn("a lost request of a batch could not be credited; trying again", { account, request: id, error });
				full.add(account);
			}
		}
		if (settled.length < CREDITED_MAX) return sum;
	}
}

/** Deletes interrupted requests that were never settled; a job of the console. */
export async function deleteLostRequests(statements: Statements): Promise<void> {
	await deleteInBatches(async () => {
		const rows = await statements`
			delete from batch_lost_request where request_id in (
				select request_id from batch_lost_request
				where lost_at < clock_timestamp() - make_interval(days => ${KEPT_DAYS}::integer) limit ${BATCH_ROWS})
			returning 1`;
		return rows.length;
	});
}
