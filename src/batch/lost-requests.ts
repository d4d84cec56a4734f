import { newId } from "../base/id.ts";
import { BATCH_ROWS, deleteInBatches } from "../db/delete-in-batches.ts";
import type { Statements } from "../db/statements.ts";
import { addUsd, type NanoUsd, nanoUsdOfColumn, ZERO_USD } from "../money/nano-usd.ts";

/** Requests that one call credits. */
const CREDITED_MAX = 500;
/** A request that was claimed and never sent has no usage record. Left journals are handed in within this time. */
const KEPT_DAYS = 90;

/**
 * Credits accounts for requests of batch lines that died with their run, since the line's next request is charged too.
 * Each is credited once, when it has a usage record. A console's job. Returns the sum.
 */
export async function creditLostRequests(statements: Statements): Promise<NanoUsd> {
	let sum = ZERO_USD;
	const settled = await statements<{ id: string }>`
		select l.request_id as id from batch_lost_request l join usage_event u on u.request_id = l.request_id
		order by l.lost_at limit ${CREDITED_MAX}`;
	for (const { id } of settled) {
		const [row] = await statements<{ charged: string | null }>`
			select batch_credit_lost(${id}::uuid, ${newId("led")}) as charged`;
		sum = addUsd(sum, nanoUsdOfColumn(row?.charged ?? 0));
	}
	return sum;
}

/** Removes lost requests that were never settled. A console's job. */
export async function forgetLostRequests(statements: Statements): Promise<void> {
	await deleteInBatches(async () => {
		const rows = await statements`
			delete from batch_lost_request where request_id in (
				select request_id from batch_lost_request
				where lost_at < clock_timestamp() - make_interval(days => ${KEPT_DAYS}::integer) limit ${BATCH_ROWS})
			returning 1`;
		return rows.length;
	});
}
