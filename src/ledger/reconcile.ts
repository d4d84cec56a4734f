import type { Statements } from "../db/statements.ts";

/** One invariant of the books and how many rows break it. */
export interface Check {
	readonly name: string;
	readonly ok: boolean;
	readonly detail: string;
}

export interface Reconciliation {
	readonly ok: boolean;
	readonly checks: readonly Check[];
}

interface CheckRow {
	name: string;
	broken: string;
	example: string | null;
}

/**
 * Checks the books as they stand in Postgres: properties of the data, whatever code wrote it. All in one statement,
 * so in one snapshot: running traffic does not disturb it.
 */
export async function reconcile(statements: Statements): Promise<Reconciliation> {
	const rows = await statements<CheckRow>`
		with leases as (
			select budget_id,
				sum(case when state = 'open' then granted_nano_usd - returned_nano_usd else settled_nano_usd end) as drawn
			from lease group by budget_id
		), operations as (
			select budget_id, instance_id, epoch,
				sum(amount_nano_usd) filter (where kind = 'grant') as granted,
				sum(amount_nano_usd) filter (where kind = 'return') as returned
			from lease_op group by 1, 2, 3
		), charges as (
			select budget_id, instance_id, epoch, sum(nano) as charged from (
				select account_id as budget_id, instance_id, epoch, charged_nano_usd as nano from usage_event
				union all select key_id, instance_id, epoch, charged_nano_usd from usage_event
			) c group by 1, 2, 3
		), broken as (
			select 'an account''s credit is the sum of its ledger entries' as name, b.id as what
			from budget b where b.kind = 'account'
				and b.limit_nano_usd <> coalesce((select sum(e.amount_nano_usd) from ledger_entry e where e.account_id = b.id), 0)
			union all
			select 'a budget''s drawn amount is what its leases hold and have spent', b.id
			from budget b left join leases l on l.budget_id = b.id where b.drawn_nano_usd <> coalesce(l.drawn, 0)
			union all
			select 'no budget is overdrawn', b.id
			from budget b where b.kind = 'account' and b.drawn_nano_usd > b.limit_nano_usd + (
				select coalesce(sum(-e.amount_nano_usd), 0) from ledger_entry e where e.account_id = b.id and e.kind = 'dispute')
			union all
			select 'granted and returned amounts are the sums of their operations', l.budget_id || ' ' || l.instance_id || ' ' || l.epoch
			from lease l left join operations o using (budget_id, instance_id, epoch)
			where l.granted_nano_usd <> coalesce(o.granted, 0) or l.returned_nano_usd <> coalesce(o.returned, 0)
			union all
			select 'a lease''s settled amount is the sum of its charges', l.budget_id || ' ' || l.instance_id || ' ' || l.epoch
			from lease l left join charges c using (budget_id, instance_id, epoch) where l.settled_nano_usd <> coalesce(c.charged, 0)
			union all
			select 'every charge has its lease', c.budget_id || ' ' || c.instance_id || ' ' || c.epoch
			from charges c left join lease l using (budget_id, instance_id, epoch) where l.budget_id is null and c.charged > 0
			union all
			select 'no lease is open whose instance has left', l.budget_id || ' ' || l.instance_id || ' ' || l.epoch
			from lease l join instance_now i on i.id = l.instance_id and i.epoch = l.epoch where l.state = 'open' and i.state = 'left'
			union all
			select 'no settled request is still shown as running', r.request_id::text
			from reservation r join usage_event u on u.request_id = r.request_id
			union all
			select 'every confirmed top-up is booked once, and no other', t.what
			from (select coalesce(t.id, e.id) as what, t.amount_nano_usd as amount, e.amount_nano_usd as booked from top_up t
				full join (select * from ledger_entry where kind = 'top_up') e on e.source_ref = 'topup:' || t.id
				where t.id is null or t.state in ('confirmed', 'refunded', 'disputed') or e.id is not null) t
			where t.amount is distinct from t.booked
		), names(name) as (values
			('an account''s credit is the sum of its ledger entries'),
			('a budget''s drawn amount is what its leases hold and have spent'),
			('no budget is overdrawn'),
			('granted and returned amounts are the sums of their operations'),
			('a lease''s settled amount is the sum of its charges'),
			('every charge has its lease'),
			('no lease is open whose instance has left'),
			('no settled request is still shown as running'),
			('every confirmed top-up is booked once, and no other')
		)
		select n.name, count(b.what) as broken, min(b.what) as example
		from names n left join broken b on b.name = n.name group by n.name order by n.name`;
	const checks = rows.map(({ name, broken, example }) => ({
		name,
		ok: Number(broken) === 0,
		detail: Number(broken) === 0 ? "holds" : `broken ${broken} times, first at ${example}`,
	}));
	return { ok: checks.every((check) => check.ok), checks };
}
