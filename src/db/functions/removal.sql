-- Deletes old rows on which no other row depends: settled requests of sealed days, lease operations, leases, epochs,
-- control entries. A call reads up to its limit of rows, is repeatable, and continues where the previous call ended.
-- src/ledger/closed-days.md says why each deletion is safe. enable_seqscan = off: the tables are long, and each call
-- reads only a part.

-- Time before which settled requests may be deleted: the end of the last day that is sealed and older than p_days.
-- Stops before the first day that differs from its seal, is not in the archive, or was sealed less than a week ago
-- (time to notice a wrong clock).
create or replace function removal_until(p_from timestamptz, p_days integer, p_archived boolean) returns timestamptz
language sql stable set enable_seqscan = off as $$
  select coalesce((
      select d.day from sealed_day d where d.day >= (p_from at time zone 'UTC')::date
        and (d.day >= (clock_timestamp() at time zone 'UTC')::date - p_days or d.sealed_at > clock_timestamp() - interval '7 days'
          or d.problem is not null or p_archived and d.archived_at is null)
      order by d.day limit 1
    ), (select s.day from seal_cursor s where s.id = 1), '-infinity')::timestamp at time zone 'UTC'
$$;

-- Does one step of deleting settled requests that were recorded and admitted more than p_days ago. The steps, each
-- committed before the next:
-- - Record a time; requests admitted before it can no longer be settled.
-- - Wait until all transactions that started before that record have ended.
-- - Check that the hourly sums contain all these requests; the sums are kept.
-- - Delete rows, reading up to p_limit per call.
-- Returns `more`: call again now; `idle`: nothing to do now; `busy`: another call runs.
create or replace function removal_usage(p_days integer, p_archived boolean, p_limit integer, out state text, out removed bigint)
language plpgsql set enable_seqscan = off as $$
declare
  r removal;
  v_until timestamptz;
  v_seen bigint;
begin
  removed := 0;
  select * into r from removal where id = 1 for update skip locked;
  if not found then
    state := 'busy';
    return;
  end if;
  state := 'idle';
  if r.usage_frozen < r.usage_before then
    -- If the hourly sums must be rebuilt, waits for that, because a rebuild needs all rows.
    if books_closed(r.usage_said_at) and pg_try_advisory_xact_lock(hashtextextended('usage is read again', 0))
        and exists (select 1 from usage_cursor c where c.horizon <= pg_current_xact_id()::text::bigint) and usage_fold() is not null then
      update removal set usage_frozen = usage_before, usage_at = '-infinity', usage_id = '00000000-0000-0000-0000-000000000000' where id = 1;
      state := 'more';
    end if;
  elsif r.usage_at < r.usage_frozen then
    with page as materialized (
      select e.settled_at, e.request_id, e.admitted_at from usage_event e
        where e.settled_at >= r.usage_at and (e.settled_at, e.request_id) > (r.usage_at, r.usage_id) and e.settled_at < r.usage_frozen
        order by e.settled_at, e.request_id limit p_limit
    ), gone as (
      -- Deletes only requests that can no longer be settled again. A clock that was ahead may have given a request a
      -- later admission time; it is deleted after that time.
      delete from usage_event e using page p where e.request_id = p.request_id and p.admitted_at < r.usage_frozen returning 1
    ), moved as (
      update removal x set usage_at = last.settled_at, usage_id = last.request_id
        from (select p.settled_at, p.request_id from page p order by p.settled_at desc, p.request_id desc limit 1) last where x.id = 1
    )
    select (select count(*) from page), (select count(*) from gone) into v_seen, removed;
    if v_seen < p_limit then
      update removal x set usage_at = x.usage_frozen where x.id = 1;
    end if;
    state := 'more';
  else
    v_until := removal_until(r.usage_before, p_days, p_archived);
    if v_until > r.usage_before then
      update removal set usage_before = v_until, usage_said_at = clock_timestamp() where id = 1;
    end if;
  end if;
end $$;

-- Reads p_limit lease operations of sealed days that are more than p_days old, and deletes those of ended epochs, which
-- never repeat them. The others stay, so a new pass over all operations starts a day after each pass. Returns the
-- number read; null if another call runs.
create or replace function removal_operations(p_days integer, p_limit integer, out seen bigint, out removed bigint)
language plpgsql set enable_seqscan = off as $$
declare
  r removal;
  v_until timestamptz := least(clock_timestamp() - make_interval(days => p_days),
    (select s.day from seal_cursor s where s.id = 1)::timestamp at time zone 'UTC');
begin
  select * into r from removal where id = 1 for update skip locked;
  if not found then
    return;
  end if;
  seen := 0; removed := 0;
  if r.op_at = '-infinity' and r.op_round_at > clock_timestamp() - interval '1 day' or not exists (select 1 from seal_cursor)
      or not exists (select 1 from lease_op o where o.at < v_until) then
    return;
  end if;
  with page as materialized (
    select o.id, o.at, o.budget_id, o.instance_id, o.epoch from lease_op o
      where o.at >= r.op_at and (o.at, o.id) > (r.op_at, r.op_id) and o.at < v_until order by o.at, o.id limit p_limit
  ), gone as (
    delete from lease_op o using page p where o.id = p.id
      and not exists (select 1 from instance_now i where i.id = p.instance_id and i.epoch = p.epoch and i.state <> 'left')
      returning 1
  ), moved as (
    update removal x set op_at = last.at, op_id = last.id,
        op_round_at = case when r.op_at = '-infinity' then clock_timestamp() else x.op_round_at end
      from (select p.at, p.id from page p order by p.at desc, p.id desc limit 1) last where x.id = 1
  )
  select (select count(*) from page), (select count(*) from gone) into seen, removed;
  if seen < p_limit then
    update removal set op_at = '-infinity', op_id = '00000000-0000-0000-0000-000000000000' where id = 1;
  end if;
end $$;

-- Deletes up to p_limit sealed leases of epochs that ended more than p_days ago; sealed_budget keeps their sums.
create or replace function removal_leases(p_days integer, p_limit integer) returns bigint
language plpgsql set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
declare
  v_removed bigint;
begin
  if not exists (select 1 from instance_now i join lease l on l.instance_id = i.id and l.epoch = i.epoch and l.sealed
      where i.state = 'left' and i.ended_at < clock_timestamp() - make_interval(days => p_days)) then
    return 0;
  end if;
  with old as materialized (
    select l.budget_id, l.instance_id, l.epoch, l.settled_nano_usd
      from instance_now i join lease l on l.instance_id = i.id and l.epoch = i.epoch and l.sealed
      where i.state = 'left' and i.ended_at < clock_timestamp() - make_interval(days => p_days)
      limit p_limit for update of l skip locked
  ), kept as (
    update sealed_budget b set removed_nano_usd = b.removed_nano_usd + o.nano
      from (select x.budget_id, sum(x.settled_nano_usd) as nano from old x group by 1) o where b.budget_id = o.budget_id
  ), gone as (
    delete from lease l using old o where l.budget_id = o.budget_id and l.instance_id = o.instance_id and l.epoch = o.epoch returning 1
  )
  select count(*) into v_removed from gone;
  return v_removed;
end $$;

-- Deletes the rows of up to p_limit epochs that ended more than p_days ago and have no lease. An instance's newest
-- epoch stays, because the next epoch's number follows from it. Returns the number of epochs.
create or replace function removal_epochs(p_days integer, p_limit integer) returns bigint
language plpgsql set enable_seqscan = off as $$
declare
  e record;
  v_removed bigint := 0;
begin
  for e in select i.id, i.epoch from instance_now i
      where i.state = 'left' and i.ended_at < clock_timestamp() - make_interval(days => p_days)
        and exists (select 1 from instance_beat n where n.id = i.id and n.epoch > i.epoch)
        and not exists (select 1 from lease l where l.instance_id = i.id and l.epoch = i.epoch and l.sealed)
        and not exists (select 1 from lease l where l.instance_id = i.id and l.epoch = i.epoch and not l.sealed)
      limit p_limit loop
    -- A late settlement takes the same lock in shared mode and creates a lease. A separate statement after the lock
    -- sees that lease.
    if pg_try_advisory_xact_lock(hashtextextended('money ' || e.id || ' ' || e.epoch, 0)) then
      delete from instance_beat b where b.id = e.id and b.epoch = e.epoch
        and not exists (select 1 from lease l where l.instance_id = e.id and l.epoch = e.epoch and l.sealed)
        and not exists (select 1 from lease l where l.instance_id = e.id and l.epoch = e.epoch and not l.sealed);
      v_removed := v_removed + 1;
    end if;
  end loop;
  return v_removed;
end $$;

-- Deletes up to p_limit of the oldest control entries: older than p_days, and applied by every epoch whose lease runs.
-- The newest entry stays, because the next number follows from it. An instance that was away for longer notices the
-- missing entry and starts a new epoch. Returns the number of entries.
create or replace function removal_control(p_days integer, p_limit integer) returns bigint
language plpgsql set enable_seqscan = off as $$
declare
  v_keep bigint := least((select max(l.seq) from control_log l),
    (select min(i.applied_seq) + 1 from instance_now i where i.state in ('live', 'silent') and i.lease_until > clock_timestamp()));
  v_removed bigint;
begin
  if not exists (select 1 from (select l.seq, l.at from control_log l order by l.seq limit 1) o
      where o.seq < v_keep and o.at < clock_timestamp() - make_interval(days => p_days)) then
    return 0;
  end if;
  with page as materialized (
    select l.seq, l.at from control_log l order by l.seq limit p_limit
  ), gone as (
    delete from control_log l where l.seq in (select p.seq from page p) and l.seq < v_keep
      -- Deletes a gapless range of numbers, even if the clock was set back.
      and l.seq < coalesce((select min(p.seq) from page p where p.at >= clock_timestamp() - make_interval(days => p_days)), v_keep)
      returning 1
  )
  select count(*) into v_removed from gone;
  return v_removed;
end $$;

-- Start of an epoch if that is at least a week after p_before, else null. Then no request of the epoch was admitted
-- before p_before: the week covers jumps of the database's clock, and the instance's clock is not used. Also null for
-- an epoch whose row a late settlement created again (ttl_ms 0).
create or replace function removal_began_after(p_instance text, p_epoch integer, p_before timestamptz) returns timestamptz
language sql stable as $$
  select i.started_at from instance_now i
    where i.id = p_instance and i.epoch = p_epoch and i.ttl_ms > 0 and i.started_at - interval '7 days' >= p_before
$$;

-- Counts settlements that are refused because records of their time were deleted. Leaves out settlements whose rows
-- still exist.
create or replace function removal_refused(p_instance text, p_epoch integer, p_id uuid[], p_charged bigint[], p_at double precision[],
  p_before timestamptz) returns void
language sql set enable_seqscan = off as $$
  insert into refused_settlement as r (instance_id, epoch, requests, charged_nano_usd)
    select p_instance, p_epoch, count(*), coalesce(sum(x.charged), 0)
      from (select unnest(p_id) as id, unnest(p_charged) as charged, unnest(p_at) as at) x
      where to_timestamp(x.at / 1000.0) < p_before and not exists (select 1 from usage_event e where e.request_id = x.id)
      having count(*) > 0
    on conflict (instance_id, epoch) do update
      set requests = r.requests + excluded.requests, charged_nano_usd = r.charged_nano_usd + excluded.charged_nano_usd, at = now()
$$;
