-- Records an expected payment; false if the id exists. p_most: limit of the account's pending payments; null: none.
-- TG002: no such account. TG004: the limit is reached.
create or replace function topup_expect(p_id text, p_account text, p_amount bigint, p_method text, p_reference text, p_most integer) returns boolean
language plpgsql as $$
begin
  -- Allows one call per account at a time, so that two calls do not both take the last place.
  perform 1 from account a where a.id = p_account for no key update;
  if not found then
    raise exception 'There is no account {id}.' using errcode = 'TG002', detail = json_build_object('id', p_account);
  end if;
  if exists (select 1 from top_up t where t.id = p_id and t.account_id = p_account) then
    return false;
  end if;
  if (select count(*) from top_up t where t.account_id = p_account and t.state = 'pending') >= p_most then
    raise exception '{count} top-ups are already pending. Cancel those that you will not pay.' using errcode = 'TG004', detail = json_build_object('count', p_most);
  end if;
  insert into top_up (id, account_id, amount_nano_usd, method, reference) values (p_id, p_account, p_amount, p_method, p_reference);
  return true;
end $$;

-- Confirms a pending top-up: its state, the credit and the account's access change in one transaction. Returns the
-- number of the last control entry; null if the top-up was confirmed before. TG002: no such top-up. TG004: it was
-- rejected, refunded or disputed, or the credit would exceed the limit of ledger_book.
create or replace function topup_confirm(p_id text, p_actor text, p_entry_id text) returns bigint
language plpgsql as $$
declare
  t top_up;
  a account;
begin
  select * into t from top_up where id = p_id for update;
  if not found then
    raise exception 'There is no top-up {id}.' using errcode = 'TG002', detail = json_build_object('id', p_id);
  end if;
  if t.state = 'confirmed' then
    return null;
  end if;
  if t.state <> 'pending' then
    raise exception 'The top-up is {state}: it cannot be confirmed.' using errcode = 'TG004', detail = json_build_object('state', t.state);
  end if;
  update top_up set state = 'confirmed', decided_at = clock_timestamp(), decided_by = p_actor where id = p_id;
  update account set topped_up = topped_up or t.amount_nano_usd >= 100000000000 where id = t.account_id returning * into a;
  if ledger_book(p_entry_id, t.account_id, 'top_up', t.amount_nano_usd, 'topup:' || t.id, p_actor, t.reference, false) is null then
    raise exception 'top-up % is pending and yet booked', p_id;
  end if;
  return control_append('account', t.account_id, account_fields(a));
end $$;

-- Promotional credit (table promotion). An account's spending uses promotional credit before paid credit, whichever
-- requests spend it. So each row stores the account's spending at a grant or return, and how much is used follows from
-- the spending. Callers of the functions that add rows must hold the budget's row lock.

-- Promotional credit that was used when the account's spending was p_spent.
create or replace function promotion_used(p_account text, p_spent numeric) returns numeric
language sql stable set enable_seqscan = off as $$
  select coalesce((select p.used_nano_usd + least(p.rest_nano_usd, p_spent - p.spent_nano_usd) from promotion p
    where p.account_id = p_account and p.spent_nano_usd <= p_spent order by p.spent_nano_usd desc, p.seq desc limit 1), 0)
$$;

-- Unspent parts of the account's grants at its current spending p_spent. Grants that end earlier are used first.
create or replace function promotion_left(p_account text, p_spent numeric) returns table (seq bigint, last_day date, left_nano_usd bigint)
language sql stable set enable_seqscan = off as $$
  select g.seq, g.last_day, (g.left_nano_usd - least(g.left_nano_usd, greatest(0, u.since - g.earlier)))::bigint
  from (
    select promotion_used(p_account, p_spent) - p.used_nano_usd as since from promotion p where p.account_id = p_account
      order by p.spent_nano_usd desc, p.seq desc limit 1
  ) u, (
    select p.seq, p.last_day, p.left_nano_usd, sum(p.left_nano_usd) over (order by p.last_day, p.seq) - p.left_nano_usd as earlier
      from promotion p where p.account_id = p_account and p.left_nano_usd > 0
  ) g
$$;

-- Adds a row: a grant of p_amount, or with a negative p_amount a return from the grant p_grant.
create or replace function promotion_add(p_account text, p_spent numeric, p_adjustment text, p_amount bigint, p_last_day date, p_grant bigint)
returns void
language plpgsql as $$
declare
  v_used numeric := promotion_used(p_account, p_spent);
begin
  update promotion p set left_nano_usd = l.left_nano_usd + case when l.seq = p_grant then p_amount else 0 end
    from promotion_left(p_account, p_spent) l where p.seq = l.seq;
  insert into promotion (account_id, adjustment_id, last_day, left_nano_usd, spent_nano_usd, used_nano_usd, rest_nano_usd)
    select p_account, p_adjustment, p_last_day, greatest(p_amount, 0), p_spent, v_used, greatest(p_amount, 0)
      + coalesce((select sum(p.left_nano_usd) from promotion p where p.account_id = p_account), 0);
end $$;

-- Gives promotional credit. A negative amount takes it back from the newest grant with enough unspent credit; TG004 if
-- there is none. Returns and raises as ledger_book does.
create or replace function promotion_give(p_entry text, p_account text, p_amount bigint, p_source_ref text, p_actor text, p_note text,
  p_adjustment text, p_last_day date) returns bigint
language plpgsql as $$
declare
  v_seq bigint;
  v_spent numeric;
  v_grant bigint;
begin
  perform 1 from budget g where g.id = p_account for update;
  v_seq := ledger_book(p_entry, p_account, 'promotion', p_amount, p_source_ref, p_actor, p_note, false);
  if v_seq is not null then
    v_spent := budget_spent(p_account);
    select l.seq into v_grant from promotion_left(p_account, v_spent) l
      where p_amount < 0 and l.left_nano_usd >= -p_amount order by l.seq desc limit 1;
    if p_amount < 0 and v_grant is null then
      raise exception 'No single grant of promotional credit has this much left.' using errcode = 'TG004';
    end if;
    perform promotion_add(p_account, v_spent, p_adjustment, p_amount, p_last_day, v_grant);
  end if;
  return v_seq;
end $$;

-- Takes back the unspent part of an expired grant, except credit that instances hold. Credit that is held is recalled
-- and left to later calls, so running requests keep it. Returns the amount. Skips an account whose row is locked; the
-- next call handles it.
create or replace function promotion_end(p_grant bigint, p_adjustment text, p_entry text) returns bigint
language plpgsql as $$
declare
  p promotion;
  v_free bigint;
  v_spent numeric;
  v_left bigint;
  v_taken bigint;
begin
  select * into p from promotion x where x.seq = p_grant;
  select g.limit_nano_usd - g.drawn_nano_usd into v_free from budget g where g.id = p.account_id for update skip locked;
  if not found then
    return 0;
  end if;
  v_spent := budget_spent(p.account_id);
  select l.left_nano_usd into v_left from promotion_left(p.account_id, v_spent) l where l.seq = p_grant;
  v_taken := least(v_left, greatest(v_free, 0));
  if v_left > 0 and v_taken = 0 and exists (select 1 from lease l where l.budget_id = p.account_id and l.state = 'open'
      and l.granted_nano_usd - l.returned_nano_usd > l.settled_nano_usd) then
    perform control_append('budget', p.account_id, '{"lowered": true}'::jsonb);
  end if;
  if v_left is null or (v_left > 0 and v_taken = 0) then
    return 0;
  end if;
  if v_taken > 0 then
    insert into credit_adjustment (id, account_id, kind, amount_nano_usd, reason, idempotency_key, state, first_by)
      select p_adjustment, a.account_id, a.kind, -v_taken, a.reason, p_adjustment, 'booked', 'tollgate'
      from credit_adjustment a where a.id = p.adjustment_id;
    perform ledger_book(p_entry, p.account_id, 'promotion', -v_taken, 'adjust:' || p_adjustment, 'tollgate',
      (select a.reason from credit_adjustment a where a.id = p_adjustment), false);
  end if;
  perform promotion_add(p.account_id, v_spent, case when v_taken > 0 then p_adjustment end, -v_taken, null, p_grant);
  return v_taken;
end $$;
