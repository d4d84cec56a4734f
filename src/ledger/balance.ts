import { Fault } from "../base/fault.ts";
import type { Statements } from "../db/statements.ts";
import { displayDifference, displaySumOfColumn, type NanoUsd, nanoUsdOfColumn } from "../money/nano-usd.ts";

/** An account's credit according to Postgres, which lacks the requests that ended in the last flush interval. */
export interface Balance {
	/** Credit that was paid and not yet spent: `available + held`. */
	readonly balance: NanoUsd;
	/**
	 * Amounts reserved by running requests, plus the leases of dead instances until their journals are replayed. Idle
	 * slices of live instances count as available, because they can be recalled.
	 */
	readonly held: NanoUsd;
	readonly available: NanoUsd;
	readonly spent: NanoUsd;
}

interface Row {
	limit: string | null;
	/** Limit minus spending, subtracted by Postgres because either amount may exceed 2^53. */
	rest: string | null;
	spent: string;
	period_spent: string;
	held: string;
}

/** Reads the credit of an account. Fault `not_found`. */
export async function accountBalance(statements: Statements, accountId: string): Promise<Balance> {
	const { rest, spent, held } = await readBudget(statements, accountId, "account");
	const balance = displaySumOfColumn(rest ?? 0);
	return { balance, held, available: displayDifference(balance, held), spent };
}

/**
 * Reads the cap of a key or project. For a cap that renews, `period` has its amount and the current period's budget id.
 * Running requests reduce what remains of the current period, even if they started in the previous one. Fault
 * `not_found`.
 */
export async function keyBalance(
	statements: Statements,
	id: string,
	period: { readonly cap: NanoUsd | null; readonly budget: string } | null = null,
	kind: "key" | "project" = "key",
) {
	const { limit, spent, periodSpent, held } = await readBudget(statements, id, kind, period?.budget);
	const lifetime = limit === null ? null : nanoUsdOfColumn(limit);
	const { cap, capSpent } = period ? { cap: period.cap, capSpent: periodSpent } : { cap: lifetime, capSpent: spent };
	const remaining = cap === null ? null : displayDifference(displayDifference(cap, capSpent), held);
	// `capSpent` counts against the cap, `spent` since the creation. Null: no cap. The account may have less credit.
	return { cap, held, spent, capSpent, remaining };
}

/**
 * Reads a budget in one snapshot, so that no amount counts twice. A live instance counts with the reserved amounts of
 * its running requests, a dead one with the rest of its lease. The limit of a renewing cap is in the budget `period`.
 */
async function readBudget(statements: Statements, id: string, kind: "account" | "key" | "project", period = "") {
	const [row] = await statements<Row>`
		with running as (
			select r.reserved_nano_usd as reserved
			from reservation r join instance_now i on i.id = r.instance_id and i.epoch = r.epoch
				and i.state = 'live' and i.lease_until > clock_timestamp()
			where case ${kind}::text when 'account' then r.account_id = ${id} when 'key' then r.key_id = ${id}
				else r.project_id = ${id} end
		)
		select b.limit_nano_usd as "limit", b.limit_nano_usd - s.spent as rest, s.spent,
			budget_spent(${period}) as period_spent,
			budget_absent(${period === "" ? id : period}) + coalesce((select sum(reserved) from running), 0) as held
		from budget b, (select budget_spent(${id}) as spent) s
		where b.id = ${id} and b.kind = ${kind}`;
	if (row === undefined) throw new Fault("not_found", `There is no ${kind} ${id}.`);
	return {
		limit: row.limit,
		rest: row.rest,
		spent: displaySumOfColumn(row.spent),
		periodSpent: displaySumOfColumn(row.period_spent),
		held: displaySumOfColumn(row.held),
	};
}
