-- Caps that renew. Each period has its own budget, `<owner>:<period>:<first day>`, which the period's first grant
-- creates. A request is settled on the budget that it reserved from, however late. The budget with the owner's id then
-- has no limit and counts total spending. src/ledger/caps.md describes the change of periods.

-- First day of the period that contains a time, in the account's time zone. Weeks start on Monday.
create or replace function cap_day(p_account text, p_period text, p_at timestamptz) returns date
language sql stable set enable_seqscan = off as $$
  select date_trunc(p_period, p_at at time zone a.time_zone)::date from account a where a.id = p_account
$$;

-- True if credit of the period may be granted: from a minute before its start until an hour after its end. Before: an
-- instance's clock may be ahead. After: for requests that were admitted in the period.
create or replace function cap_is_timely(p_account text, p_period text, p_start date) returns boolean
language sql stable as $$
  select p_start <= cap_day(p_account, p_period, clock_timestamp() + interval '1 minute')
    and p_start >= cap_day(p_account, p_period, clock_timestamp() - interval '1 hour')
$$;

-- Creates a period's budget without waiting for locks.
-- - `opened`: the budget exists now.
-- - `busy`: another transaction has locked the owner's row, as every change of the cap does.
-- - `untimely`: the cap has no such period now.
-- - `unknown`: there is no such owner.
create or replace function cap_open(p_budget text) returns text
language plpgsql set enable_seqscan = off as $$
declare
  k record;
  v_owner text := split_part(p_budget, ':', 1);
  v_period text := split_part(p_budget, ':', 2);
  v_start date;
begin
  if v_period not in ('day', 'week', 'month') then
    return 'unknown';
  end if;
  v_start := split_part(p_budget, ':', 3)::date;
  if v_owner like 'proj\_%' then
    select x.account_id, x.cap_nano_usd, x.cap_period, 'project' as kind into k from project x where x.id = v_owner for no key update skip locked;
  else
    select x.account_id, x.cap_nano_usd, x.cap_period, 'key' as kind into k from api_key x where x.id = v_owner for no key update skip locked;
  end if;
  if not found then
    return case when exists (select 1 from api_key x where x.id = v_owner) or exists (select 1 from project x where x.id = v_owner)
      then 'busy' else 'unknown' end;
  end if;
  if k.cap_period <> v_period or k.cap_nano_usd is null or not cap_is_timely(k.account_id, v_period, v_start)
      or v_start <> date_trunc(v_period, v_start)::date then
    return 'untimely';
  end if;
  -- Does nothing if a concurrent call has created the budget.
  insert into budget (id, kind, account_id, limit_nano_usd, owner_id, period, period_start)
    values (p_budget, k.kind, k.account_id, k.cap_nano_usd, v_owner, v_period, v_start) on conflict do nothing;
  return 'opened';
end $$;

-- Id of the budget with the key's current cap: of the key itself, or of the current period, whose budget may not exist
-- yet.
create or replace function cap_budget(k api_key) returns text
language sql stable as $$
  select case when k.cap_period = 'lifetime' then k.id
    else k.id || ':' || k.cap_period || ':' || cap_day(k.account_id, k.cap_period, clock_timestamp()) end
$$;

-- Id of the budget with the project's current cap, as for a key.
create or replace function cap_budget(p project) returns text
language sql stable as $$
  select case when p.cap_period = 'lifetime' then p.id
    else p.id || ':' || p.cap_period || ':' || cap_day(p.account_id, p.cap_period, clock_timestamp()) end
$$;

-- Adjusts the owner's budgets (the lifetime budget, and those of periods that have not ended) after the control entry
-- p_seq changed the cap. The caller has locked the owner's row. If a lifetime cap becomes periodic, it stays in force
-- until all instances have applied the change. Returns the number of the last control entry; null for none.
create or replace function cap_change(p_owner text, p_account text, p_former text, p_period text, p_cap bigint, p_seq bigint) returns bigint
language plpgsql set enable_seqscan = off as $$
declare
  b record;
  v_seq bigint;
  v_limit bigint;
  v_lift bigint;
begin
  for b in select g.id, g.owner_id, g.limit_nano_usd as cap, g.lift_seq from budget g
      where g.id = p_owner or g.owner_id = p_owner and g.period = p_period and cap_is_timely(p_account, g.period, g.period_start)
      order by g.id for update loop
    v_limit := p_cap;
    v_lift := null;
    if b.owner_id is null and p_period <> 'lifetime' then
      v_lift := case when b.cap is not null and p_former = 'lifetime' and p_cap is not null then p_seq else b.lift_seq end;
      v_limit := case when v_lift is not null then b.cap end;
    end if;
    update budget g set limit_nano_usd = v_limit, lift_seq = v_lift where g.id = b.id;
    if v_limit is distinct from b.cap then
      v_seq := control_append('budget', b.id, jsonb_build_object('lowered', v_limit is not null and (b.cap is null or v_limit < b.cap)));
    end if;
  end loop;
  return v_seq;
end $$;
