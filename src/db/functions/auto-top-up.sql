-- Automatic top-ups: when a payment attempt starts, and what its outcome causes. Lock order: top_up,
-- auto_top_up_attempt, auto_top_up. The function that starts an attempt locks only the account's auto_top_up row and
-- waits for no other lock.

-- Reads up to p_limit rows of auto_top_up_touched, and schedules a check of accounts whose credit is below their
-- threshold.
-- - The rows are deleted in the same transaction, so a crash loses nothing.
-- - The cost depends neither on the number of accounts nor on the number of an account's rows.
-- - A check that is already scheduled keeps its time.
-- Returns the number of rows; 0 while another console does this, because two could deadlock.
create or replace function auto_top_up_sort(p_limit integer) returns integer
language plpgsql set enable_seqscan = off set enable_mergejoin = off set enable_hashjoin = off as $$
declare
  v_seen integer;
begin
  if not pg_try_advisory_xact_lock(hashtextextended('automatic top-ups', 0)) then
    return 0;
  end if;
  -- Checks are never scheduled that far ahead, so the database's clock was set back since: check now.
  update auto_top_up s set look_at = now() where s.state = 'on' and s.look_at > now() + interval '25 hours';
  update auto_top_up_attempt t set look_at = now()
    where t.state in ('begun', 'sent', 'unknown', 'needs_authentication') and t.look_at > now() + interval '2 hours';
  with taken as (
    delete from auto_top_up_touched t where t.id in (
      select x.id from auto_top_up_touched x order by x.id limit p_limit for update skip locked) returning t.account_id
  ), low as (
    update auto_top_up s set look_at = now() from (select distinct t.account_id from taken t) n, budget b
      where s.account_id = n.account_id and s.state = 'on' and s.look_at is null
        and b.id = s.account_id and b.limit_nano_usd - budget_spent(b.id) < s.below_nano_usd
  )
  select count(*) into v_seen from taken;
  return v_seen;
end $$;

-- Calendar month of a time in a time zone, such as 2027-01.
create or replace function auto_top_up_month(p_at timestamptz, p_zone text) returns text
language sql stable as $$
  select to_char(p_at at time zone p_zone, 'YYYY-MM')
$$;

-- Amount that the account bought or is buying in the current month. Each attempt stores its month, because a changed
-- time zone could move it to another month. Reads attempts from two days before the month.
create or replace function auto_top_up_bought(p_account text, p_zone text) returns numeric
language sql stable as $$
  select coalesce(sum(m.amount_nano_usd), 0) from auto_top_up_attempt m
    where m.account_id = p_account and m.state not in ('declined', 'ended')
      and m.begun_at >= date_trunc('month', now(), p_zone) - interval '2 days'
      and m.month = auto_top_up_month(now(), p_zone)
$$;

-- Starts a payment attempt if the credit is below the threshold and nothing forbids it. Locks the account's settings,
-- so that only one console starts an attempt. Reads credit and open attempts in one snapshot, so that a payment that is
-- being credited counts once. Returns true if an attempt started.
create or replace function auto_top_up_begin(p_account text, p_attempt text, p_top_up text, p_reference text) returns boolean
language plpgsql as $$
declare
  s auto_top_up;
  a account;
  c saved_card;
  v_balance numeric;
  v_open boolean;
  v_bought numeric;
begin
  select * into s from auto_top_up t where t.account_id = p_account and t.state = 'on' for update;
  if not found then
    return false;
  end if;
  select * into a from account x where x.id = p_account;
  select * into c from saved_card x where x.account_id = p_account;
  select b.limit_nano_usd - budget_spent(b.id),
      exists (select 1 from auto_top_up_attempt o where o.account_id = p_account and o.state in ('begun', 'sent', 'unknown', 'needs_authentication')),
      auto_top_up_bought(p_account, a.time_zone)
    into v_balance, v_open, v_bought from budget b where b.id = p_account;
  if v_open or v_balance >= s.below_nano_usd then
    update auto_top_up t set look_at = null where t.account_id = p_account and t.look_at is not null;
    return false;
  end if;
  if v_bought + s.amount_nano_usd > s.month_most_nano_usd then
    -- Schedules the next check within a day, because the account's time zone or the clock may change.
    update auto_top_up t set look_at = least(now() + interval '1 day',
        (date_trunc('month', now() at time zone a.time_zone) + interval '1 month') at time zone a.time_zone)
      where t.account_id = p_account;
    return false;
  end if;
  if a.state <> 'active' or c.payment_method_id is null then
    update auto_top_up t set look_at = now() + interval '10 minutes' where t.account_id = p_account;
    return false;
  end if;
  insert into top_up (id, account_id, amount_nano_usd, method, reference)
    values (p_top_up, p_account, s.amount_nano_usd, 'card', p_reference);
  insert into auto_top_up_attempt (id, account_id, top_up_id, amount_nano_usd, customer_id, payment_method_id, state, month)
    values (p_attempt, p_account, p_top_up, s.amount_nano_usd, c.customer_id, c.payment_method_id, 'begun', auto_top_up_month(now(), a.time_zone));
  update auto_top_up t set look_at = null where t.account_id = p_account;
  return true;
end $$;

-- Ends an open attempt that charged nothing, or marks it as needing its owner's authentication. No attempt starts until
-- a member has acted, and members get notices of the reason.
-- - If the attempt never reached Stripe (ended), nothing is known about the card, so the account is checked again.
-- - The top-up is rejected unless the owner may still pay it.
-- - False if the attempt is no longer open, such as after a payment, which stays.
create or replace function auto_top_up_stop(p_attempt text, p_state text, p_reason text) returns boolean
language plpgsql as $$
declare
  t auto_top_up_attempt;
begin
  perform 1 from top_up u where u.id = (select x.top_up_id from auto_top_up_attempt x where x.id = p_attempt) for update;
  update auto_top_up_attempt x set state = p_state, reason = p_reason, look_at = now(), looks = 0,
      ended_at = case when p_state = 'needs_authentication' then null else clock_timestamp() end
    where x.id = p_attempt and x.state in ('begun', 'sent', 'unknown') returning * into t;
  if not found then
    return false;
  end if;
  update stripe_finding f set resolved_at = clock_timestamp(), resolved_by = 'stripe', resolution = 'not paid'
    where f.id = 'open:' || p_attempt and f.resolved_at is null;
  if p_state <> 'needs_authentication' then
    update top_up u set state = 'rejected', decided_at = clock_timestamp(), decided_by = 'stripe' where u.id = t.top_up_id and u.state = 'pending';
  end if;
  if p_state = 'ended' then
    insert into auto_top_up_touched (account_id) values (t.account_id);
  else
    perform auto_top_up_halt(t.account_id, case p_state when 'needs_authentication' then 'needs_owner' else 'stopped' end, p_reason);
  end if;
  return true;
end $$;

-- Raises an alarm for the operators and creates notices for the account's members about an attempt that has been open
-- for too long. The attempt stays open, because the card may still be charged; the alarm ends with it.
create or replace function auto_top_up_undecided(p_attempt text, p_reason text) returns void
language plpgsql as $$
declare
  t auto_top_up_attempt;
begin
  perform 1 from top_up u where u.id = (select x.top_up_id from auto_top_up_attempt x where x.id = p_attempt) for update;
  select * into t from auto_top_up_attempt x where x.id = p_attempt and x.state in ('begun', 'sent', 'unknown') for update;
  if not found then
    return;
  end if;
  insert into stripe_finding (id, kind, reason, top_up_id, amount_cents, currency)
    values ('open:' || t.id, 'undecided', p_reason, t.top_up_id, t.amount_nano_usd / 10000000, 'usd') on conflict (id) do nothing;
  if found then
    update auto_top_up s set tell = 'undecided' where s.account_id = t.account_id and s.state = 'on';
  end if;
end $$;

-- Stops the account's automatic top-ups and schedules notices of the reason for its members.
create or replace function auto_top_up_halt(p_account text, p_state text, p_reason text) returns void
language sql as $$
  update auto_top_up s set state = p_state, reason = p_reason, changed_at = clock_timestamp(), look_at = null,
      tell = p_reason
    where s.account_id = p_account and s.state = 'on'
$$;

-- Handles an attempt that needed its owner, after its top-up was confirmed or rejected. If it was paid, automatic
-- top-ups continue; otherwise the attempt ends.
create or replace function auto_top_up_decided(p_attempt text) returns void
language plpgsql as $$
declare
  t auto_top_up_attempt;
begin
  update auto_top_up_attempt x set ended_at = clock_timestamp(), state = case u.state when 'rejected' then 'ended' else 'succeeded' end
    from top_up u where x.id = p_attempt and x.state = 'needs_authentication' and u.id = x.top_up_id and u.state <> 'pending'
    returning x.* into t;
  if not found then
    return;
  end if;
  if t.state = 'succeeded' then
    update auto_top_up s set state = 'on', reason = null, tell = null, changed_at = clock_timestamp() where s.account_id = t.account_id and s.state = 'needs_owner';
  else
    update auto_top_up s set state = 'stopped', changed_at = clock_timestamp() where s.account_id = t.account_id and s.state = 'needs_owner';
  end if;
  insert into auto_top_up_touched (account_id) values (t.account_id);
end $$;

-- Creates notices for accounts whose automatic top-ups stopped: mails to members with a role of p_roles, and for the
-- webhook if subscribed. Clears the pending notice in the same transaction.
create or replace function auto_top_up_tell(p_roles jsonb, p_limit integer) returns integer
language plpgsql as $$
declare
  r record;
  v_told integer := 0;
begin
  for r in select * from auto_top_up s where s.tell is not null order by s.changed_at limit p_limit for update skip locked loop
    perform alert_notice(r.account_id, 'auto_top_up.stopped', jsonb_build_object('state', r.state, 'reason', r.tell), p_roles, true);
    update auto_top_up s set tell = null where s.account_id = r.account_id;
    v_told := v_told + 1;
  end loop;
  return v_told;
end $$;
