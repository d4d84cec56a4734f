-- Leases of budgets: granted, recalled, returned, closed. Each function is called as an autocommit statement and is
-- repeatable. enable_seqscan = off: plans are kept from the first calls, when tables are empty.
--
-- No function waits for a row lock, because a batch has many accounts and a locked row must not delay the others. Rows
-- that cannot be locked are returned as busy, and the instance sends them again. So row locks need no order.
--
-- Statements that must not run while an epoch is being closed hold that epoch's advisory lock `money` in shared mode;
-- closing takes it exclusively. A holder reads the epoch's state in a separate statement after the lock; closing cannot
-- change the state until commit.

-- Total spending of a budget: that of unsealed leases, plus the sum of all sealed ones.
create or replace function budget_spent(p_budget text) returns numeric
language sql stable set enable_seqscan = off as $$
  select coalesce((select sum(l.settled_nano_usd) from lease l where l.budget_id = p_budget and not l.sealed), 0)
    + coalesce((select b.spent_nano_usd from sealed_budget b where b.budget_id = p_budget), 0)
$$;

-- Credit of a budget that dead instances hold until their journals are replayed, including that of their running
-- requests.
create or replace function budget_absent(p_budget text) returns numeric
language sql stable set enable_seqscan = off as $$
  select coalesce(sum(l.granted_nano_usd - l.returned_nano_usd - l.settled_nano_usd), 0)
    from lease l left join instance_now i on i.id = l.instance_id and i.epoch = l.epoch
    where l.budget_id = p_budget and not l.sealed and l.state = 'open'
      and not coalesce(i.state = 'live' and i.lease_until > clock_timestamp(), false)
$$;

-- Grants credit to a live instance. p_requests: [{op, budget, want, min, again, ticket}], at most one per budget.
-- - A grant is the fair part of `want`: half of the available credit divided by the live instances, but at least `min`.
--   If less than `min` is available, nothing is granted.
-- - While other instances need the budget too, a grant is `min`.
-- - An unknown budget has nothing available.
-- - The first grant creates the budget of a cap's period.
-- - again: an earlier attempt may still arrive, so a refusal is recorded, which prevents its grant.
-- - ticket: the recall whose answers count.
-- Returns per request:
-- - amount: granted credit.
-- - available: credit available now; null: no limit.
-- - unanswered: number of instances that have not answered the recall, if their credit would suffice.
-- - lent: once all have answered, the sum of grants minus the limit; the caller compares it between two calls.
-- - contested: other instances need the budget too.
-- - busy: the budget's row is locked; nothing was done.
-- - untimely: by the database's clock the period has ended, has not started, or is not the cap's; nothing was done.
create or replace function lease_grant(p_instance text, p_epoch integer, p_requests json)
returns table (op uuid, amount bigint, available bigint, unanswered integer, lent numeric, contested boolean, busy boolean, untimely boolean)
language plpgsql set enable_seqscan = off as $$
declare
  r record;
  b record;
  l record;
  v_live integer;
  v_opened text;
  v_amount bigint;
  v_ticket bigint;
  v_elsewhere bigint;
begin
  perform pg_advisory_xact_lock_shared(hashtextextended('money ' || p_instance || ' ' || p_epoch, 0));
  if not exists (select 1 from instance_now i where i.id = p_instance and i.epoch = p_epoch and i.state in ('live', 'silent')) then
    raise exception 'instance is not live' using errcode = 'TG001';
  end if;
  select greatest(1, count(*))::integer into v_live from instance_now i where i.state = 'live';
  for r in select x.op, x.budget, x.want, x.min, x.again, x.ticket
      from json_to_recordset(p_requests) as x(op uuid, budget text, want bigint, min bigint, again boolean, ticket bigint) loop
    op := r.op; amount := 0; available := 0; unanswered := 0; lent := null; contested := false; busy := false; untimely := false;
    select g.limit_nano_usd as cap, g.drawn_nano_usd as drawn, g.lift_seq, g.period, g.period_start, g.account_id into b
      from budget g where g.id = r.budget for no key update skip locked;
    if not found then
      if exists (select 1 from budget g where g.id = r.budget) then
        busy := true;
        return next;
        continue;
      end if;
      v_opened := cap_open(r.budget);
      select g.limit_nano_usd as cap, g.drawn_nano_usd as drawn, g.lift_seq, g.period, g.period_start, g.account_id into b
        from budget g where g.id = r.budget and v_opened = 'opened' for no key update skip locked;
      if not found then
        busy := v_opened in ('busy', 'opened');
        untimely := v_opened = 'untimely';
        if untimely and r.again then
          insert into lease_op (id, budget_id, instance_id, epoch, kind, amount_nano_usd)
            values (r.op, r.budget, p_instance, p_epoch, 'grant', 0) on conflict do nothing;
        end if;
        return next;
        continue;
      end if;
    end if;
    -- A crashed instance counts as live until another instance has waited for its lease by its own clock, because the
    -- database's clock may have been set forward.
    if b.lift_seq is not null and not exists (select 1 from instance_now i where i.state = 'live' and i.applied_seq < b.lift_seq) then
      update budget g set limit_nano_usd = null, lift_seq = null where g.id = r.budget;
      b.cap := null;
    end if;
    -- Safe without a lock on the lease: only grants, returns and late settlements add or open its row, and each locks
    -- the budget's row.
    select x.state into l from lease x where x.budget_id = r.budget and x.instance_id = p_instance and x.epoch = p_epoch for no key update skip locked;
    if not found and exists (select 1 from lease x where x.budget_id = r.budget and x.instance_id = p_instance and x.epoch = p_epoch) then
      busy := true;
      return next;
      continue;
    end if;
    select max(x.ticket) into v_ticket from recall x
      where x.budget_id = r.budget and (x.instance_id, x.epoch) <> (p_instance, p_epoch) and x.at > clock_timestamp() - interval '5 seconds';
    contested := v_ticket is not null;
    select o.amount_nano_usd into v_amount from lease_op o where o.id = r.op;
    if not found then
      if b.period is not null and not cap_is_timely(b.account_id, b.period, b.period_start) then
        untimely := true;
        v_amount := 0;
      elsif b.cap is null then
        v_amount := r.want;
      else
        v_amount := least(case when contested then r.min else r.want end, greatest(r.min, (b.cap - b.drawn) / (2 * v_live)));
        if v_amount > b.cap - b.drawn or v_amount < r.min then
          v_amount := 0;
          -- The budget's limit is about to be removed. The instance repeats the request, and then there is no limit.
          busy := b.lift_seq is not null and not r.again;
        end if;
      end if;
      if v_amount > 0 or r.again then
        insert into lease_op (id, budget_id, instance_id, epoch, kind, amount_nano_usd)
          values (r.op, r.budget, p_instance, p_epoch, 'grant', v_amount);
      end if;
      if v_amount > 0 then
        -- An instance that had no credit and gets only what its requests need keeps no idle credit, so it counts as
        -- having answered the recall.
        insert into lease as x (budget_id, instance_id, epoch, granted_nano_usd, recalled)
          values (r.budget, p_instance, p_epoch, v_amount, coalesce(v_ticket, 0))
          on conflict (budget_id, instance_id, epoch) do update set granted_nano_usd = x.granted_nano_usd + excluded.granted_nano_usd,
            state = 'open', recalled = case when x.state = 'closed' then greatest(x.recalled, excluded.recalled) else x.recalled end;
        update budget g set drawn_nano_usd = g.drawn_nano_usd + v_amount where g.id = r.budget;
        b.drawn := b.drawn + v_amount;
      end if;
    end if;
    amount := v_amount;
    -- At most the largest integer that JSON numbers represent exactly: a larger one would make the response fail for
    -- all budgets.
    available := case when b.cap is null then null else least(9007199254740991, greatest(0, b.cap - b.drawn)) end;
    if amount = 0 and b.cap is not null then
      -- Sum of the credit that other instances hold, which would be available if it were idle. The lock on the budget's
      -- row prevents grants and returns.
      select coalesce(sum(x.granted_nano_usd - x.returned_nano_usd - x.settled_nano_usd), 0),
          count(*) filter (where x.recalled < coalesce(r.ticket, 9223372036854775807))
        into v_elsewhere, unanswered
        from lease x join instance_now i on i.id = x.instance_id and i.epoch = x.epoch
          -- Credit of leases that are being closed comes back. So does credit of an epoch whose instance has a newer
          -- epoch, which replays the journal.
          and (i.state in ('live', 'closing') or exists (
            select 1 from instance_now n where n.id = i.id and n.epoch > i.epoch and n.state in ('live', 'silent')))
        where x.budget_id = r.budget and x.state = 'open' and (x.instance_id, x.epoch) <> (p_instance, p_epoch);
      if available + v_elsewhere < r.min then
        unanswered := 0;
      elsif unanswered = 0 then
        -- Unsealed leases suffice, because sealed ones ended at least an hour ago. The sum falls when a lease is
        -- sealed; the caller then has no proof and repeats the recall.
        select sum(x.granted_nano_usd) - b.cap into lent from lease x where x.budget_id = r.budget and not x.sealed;
      end if;
    end if;
    return next;
  end loop;
end $$;

-- Returns credit of leases. p_requests: [{op, budget, amount, recall}]; the instance has already removed the amounts
-- from its memory. recall: number of the newest recall that this return answers; amount 0 only answers. Returns the ops
-- that were not executed because a row is locked.
create or replace function lease_return(p_instance text, p_epoch integer, p_requests json) returns setof uuid
language plpgsql set enable_seqscan = off as $$
declare
  r record;
  l record;
begin
  perform pg_advisory_xact_lock_shared(hashtextextended('money ' || p_instance || ' ' || p_epoch, 0));
  if not exists (select 1 from instance_now i where i.id = p_instance and i.epoch = p_epoch and i.state not in ('closing', 'left')) then
    return; -- the epoch's leases are closed; closing has returned this credit
  end if;
  for r in select x.op, x.budget, x.amount, x.recall from json_to_recordset(p_requests) as x(op uuid, budget text, amount bigint, recall bigint) loop
    if r.amount > 0 then
      perform 1 from budget g where g.id = r.budget for no key update skip locked;
      if not found then
        return next r.op;
        continue;
      end if;
      if exists (select 1 from lease_op o where o.id = r.op) then
        continue;
      end if;
    end if;
    select x.state, x.granted_nano_usd - x.returned_nano_usd - x.settled_nano_usd as rest into l from lease x
      where x.budget_id = r.budget and x.instance_id = p_instance and x.epoch = p_epoch for no key update skip locked;
    if not found then
      if exists (select 1 from lease x where x.budget_id = r.budget and x.instance_id = p_instance and x.epoch = p_epoch) then
        return next r.op;
      elsif r.amount > 0 then
        raise exception 'no lease of % to return to', r.budget;
      end if;
      continue;
    end if;
    if r.amount > 0 and l.state <> 'open' then
      raise exception 'no open lease of % to return to', r.budget;
    end if;
    update lease x set returned_nano_usd = x.returned_nano_usd + r.amount, recalled = greatest(x.recalled, coalesce(r.recall, 0)),
        state = case when l.rest = r.amount then 'closed' else x.state end
      where x.budget_id = r.budget and x.instance_id = p_instance and x.epoch = p_epoch;
    if r.amount > 0 then
      insert into lease_op (id, budget_id, instance_id, epoch, kind, amount_nano_usd)
        values (r.op, r.budget, p_instance, p_epoch, 'return', r.amount);
      update budget g set drawn_nano_usd = g.drawn_nano_usd - r.amount where g.id = r.budget;
    end if;
  end loop;
end $$;

-- Recalls idle credit of these budgets from all other instances. Returns the recall's number, which their answers
-- state.
create or replace function lease_recall(p_instance text, p_epoch integer, p_budgets json) returns bigint
language plpgsql as $$
declare
  v_ticket bigint := nextval('recall_ticket');
begin
  insert into recall (budget_id, ticket, instance_id, epoch)
    select x.budget, v_ticket, p_instance, p_epoch
      from (select distinct e.budget from json_array_elements_text(p_budgets) as e(budget)) x;
  -- Deletes recalls whose requests have stopped waiting for answers.
  delete from recall r using (
      select o.budget_id, o.ticket from recall o where o.at < clock_timestamp() - interval '1 minute' limit 1000 for update skip locked
    ) old where r.budget_id = old.budget_id and r.ticket = old.ticket;
  perform pg_notify('tollgate_recall', '');
  return v_ticket;
end $$;

-- Lists recalls of other instances that this epoch has not answered.
create or replace function lease_recalled(p_instance text, p_epoch integer) returns table (budget text, ticket bigint)
language sql set enable_seqscan = off as $$
  select r.budget_id, max(r.ticket) from recall r
    join lease l on l.budget_id = r.budget_id and l.instance_id = p_instance and l.epoch = p_epoch and l.state = 'open' and l.recalled < r.ticket
    where (r.instance_id, r.epoch) <> (p_instance, p_epoch) and r.at > clock_timestamp() - interval '1 minute'
    group by 1
$$;

-- Closes up to p_limit leases of an instance that will settle nothing more; unspent credit becomes available. From the
-- first call on, the epoch gets no grants, and its later settlements are late ones. Returns the number of closed leases
-- and whether all are closed. Leases with locked rows are left to the next call.
-- - p_journal_lost: the operator attests that the journal is lost. Requests that are known only as reservations are
--   recorded as crashed, without charge or rate card, so that a late settlement recognizes them.
-- - p_keep: budgets whose leases stay open for late settlements.
create or replace function lease_close(p_instance text, p_epoch integer, p_journal_lost boolean, p_limit integer, p_keep json default '[]')
returns table (closed integer, done boolean)
language plpgsql set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
declare
  r record;
  v_keep text[] := array(select k.budget from json_array_elements_text(p_keep) as k(budget));
begin
  closed := 0; done := true;
  perform pg_advisory_xact_lock(hashtextextended('money ' || p_instance || ' ' || p_epoch, 0));
  if not exists (select 1 from instance_now i where i.id = p_instance and i.epoch = p_epoch and i.state <> 'left') then
    return next;
    return;
  end if;
  perform instance_stand(p_instance, p_epoch, null, array['joining', 'live', 'silent', 'dead'], 'closing', null, null);
  for r in select l.budget_id, l.granted_nano_usd - l.returned_nano_usd - l.settled_nano_usd as rest
      from lease l join budget g on g.id = l.budget_id
      where l.instance_id = p_instance and l.epoch = p_epoch and l.state = 'open' and l.budget_id <> all (v_keep)
      limit p_limit for no key update of l, g skip locked loop
    update budget g set drawn_nano_usd = g.drawn_nano_usd - r.rest where g.id = r.budget_id;
    update lease l set state = 'closed' where l.budget_id = r.budget_id and l.instance_id = p_instance and l.epoch = p_epoch;
    closed := closed + 1;
  end loop;
  if v_keep <> '{}' then
    done := false;
    return next;
    return;
  end if;
  with gone as (
    delete from reservation v using (
        select o.request_id from reservation o where o.instance_id = p_instance and o.epoch = p_epoch limit p_limit for update skip locked
      ) x where v.request_id = x.request_id returning v.*
  )
  insert into usage_event (request_id, account_id, key_id, instance_id, epoch, model, rate_card_id, endpoint, streamed,
      reserved_nano_usd, charged_nano_usd, basis, ending, status, admitted_at, project_id)
    select v.request_id, v.account_id, v.key_id, p_instance, p_epoch, v.model, '', 'chat', false,
      v.reserved_nano_usd, 0, 'recovered', 'crashed', 500, v.admitted_at, v.project_id
    from gone v where p_journal_lost and not exists (select 1 from removal m where v.admitted_at < m.usage_before)
    on conflict do nothing;
  done := not exists (select 1 from lease l where l.instance_id = p_instance and l.epoch = p_epoch and l.state = 'open')
    and not exists (select 1 from reservation v where v.instance_id = p_instance and v.epoch = p_epoch);
  if done then
    perform instance_stand(p_instance, p_epoch, null, array['closing'], 'left', null, null);
  end if;
  return next;
end $$;
