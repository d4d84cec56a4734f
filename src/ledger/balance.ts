import { Fault } from "../base/fault.ts";
import type { Statements } from "../db/statements.ts";
import type { NanoUsd } from "../money/nano-usd.ts";
import { nanoUsdOfColumn, shownRest, sumOfColumn } from "../money/nano-usd.ts";

/** An account's credit as Postgres knows it; requests of the last flush interval are not in it yet. */
export interface Balance {
	/** What was paid in and not spent: `available + held`. */
	readonly balance: NanoUsd;
	/**
	 * What running requests reserved, and what instances that are not live hold of it until their journals are
	 * replayed. Idle slices of live instances are available: they can be recalled.
	 */
	readonly held: NanoUsd;
	readonly available: NanoUsd;
	readonly spent: NanoUsd;
}

/** What a key, or a project's keys together, may spend and have spent. */
export interface KeyBalance {
	readonly cap: NanoUsd | null;
	readonly held: NanoUsd;
	/** Ever. */
	readonly spent: NanoUsd;
	/** What counts against the cap: in its present period, if it begins anew. */
	readonly capSpent: NanoUsd;
	/** What its cap still allows; null without a cap. The account's credit may allow less. */
	readonly remaining: NanoUsd | null;
}

/** A cap that begins anew, and the budget of its present period. */
interface CapPeriodOf {
	readonly cap: NanoUsd | null;
	readonly budget: string;
}

interface Row {
	limit: string | null;
	/** Limit − spent: reckoned in Postgres, since both are sums of a lifetime. */
	rest: string | null;
	spent: string;
	period_spent: string;
	held: string;
}

/** Fault not_found. */
export async function accountBalance(statements: Statements, accountId: string): Promise<Balance> {
	const { rest, spent, held } = await readBudget(statements, accountId, "account");
	const balance = sumOfColumn(rest ?? 0);
	return { balance, held, available: shownRest(balance, held), spent };
}

/**
 * `period`: the cap, if it begins anew, and the budget of its present period; what runs counts against that one, although
 * it may have been admitted in the one before. Fault not_found.
 */
export async function keyBalance(
	statements: Statements,
	keyId: string,
	period: CapPeriodOf | null = null,
): Promise<KeyBalance> {
	return capBalance(statements, keyId, "key", period);
}

/** The same of a project. */
export async function projectBalance(
	statements: Statements,
	projectId: string,
	period: CapPeriodOf | null = null,
): Promise<KeyBalance> {
	return capBalance(statements, projectId, "project", period);
}

async function capBalance(
	statements: Statements,
	id: string,
	kind: "key" | "project",
	period: CapPeriodOf | null,
): Promise<KeyBalance> {
	const { limit, spent, periodSpent, held } = await readBudget(statements, id, kind, period?.budget);
	const lifetime = limit === null ? null : nanoUsdOfColumn(limit);
	const { cap, capSpent } = period ? { cap: period.cap, capSpent: periodSpent } : { cap: lifetime, capSpent: spent };
	return { cap, held, spent, capSpent, remaining: cap === null ? null : shownRest(shownRest(cap, capSpent), held) };
}

/**
 * One statement, so one snapshot. Each dollar is held once: of an instance that is live its running requests, of any
 * other the rest of its lease, in which its requests are contained. `period`: the budget that limits it now, of which an
 * instance holds less than of its own, which has no limit then.
 */
async function readBudget(
	statements: Statements,
	id: string,
	kind: "account" | "key" | "project",
	period = "",
): Promise<{ limit: string | null; rest: string | null; spent: NanoUsd; periodSpent: NanoUsd; held: NanoUsd }> {
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
		spent: sumOfColumn(row.spent),
		periodSpent: sumOfColumn(row.period_spent),
		held: sumOfColumn(row.held),
	};
}
