-- Removes what is old, when nothing rests on it any more: settled requests of sealed days, operations on leases, leases,
-- epochs of instances, entries of the control log. No call looks at more rows than it is told to; each may be repeated,
-- and goes on where the one before it ended. README.md of src/ledger says why each is safe.
-- enable_seqscan = off: the tables that are read here are long, and only a part of each is wanted.

-- Version 0.1 counts all rows there ever were, and knows of no request that must not be settled any more: nothing goes
-- while one of its epochs has not ended, and from then on it cannot join again. False while that is so.
create or replace function removal_ready() returns boolean
language plpgsql as $$
begin
  if exists (select 1 from instance_now i where i.is_0_1 and i.state <> 'left') then
    return false;
  end if;
  if to_regclass('control_clock') is null or exists (
      select 1 from pg_trigger t where t.tgrelid = to_regclass('control_clock') and t.tgfoid = 'refuse_version_0_1'::regproc) then
    return true;
  end if;
  lock table instance, control_clock in share row exclusive mode;
  if exists (select 1 from instance_now i where i.is_0_1 and i.state <> 'left') then
    return false;
  end if;
  create or replace trigger control_clock_0_1 instead of insert or update on control_clock for each row execute function refuse_version_0_1();
  create or replace trigger instance_0_1 instead of insert or update on instance for each row execute function refuse_version_0_1();
  return true;
end $$;

-- Until which moment settled requests may go: whole days that are sealed and over for p_days, up to the first one that was
-- sealed within a week (a clock that leaps leaves that long to notice), does not agree with its seal, or lacks its archive.
create or replace function removal_until(p_from timestamptz, p_days integer, p_archived boolean) returns timestamptz
language sql stable set enable_seqscan = off as $$
  select coalesce((
      select d.day from sealed_day d where d.day >= (p_from at time zone 'UTC')::date
        and (d.day >= (clock_timestamp() at time zone 'UTC')::date - p_days or d.sealed_at > clock_timestamp() - interval '7 days'
          or d.problem is not null or p_archived and d.archived_at is null)
      order by d.day limit 1
    ), (select s.day from sealing s where s.id = 1), '-infinity')::timestamp at time zone 'UTC'
$$;

-- One step of removing settled requests that were recorded and admitted in days of more than p_days ago. In this order,
-- each committed before the next: it is said from when on nothing of before is settled any more; whoever did not hear that
-- has ended; the sums by the hour have taken all of it in, and stay; the rows go, p_limit looked at in a step. `more`:
-- there is more to do now; `idle`: not now; `busy`: somebody is at it.
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
    -- Sums that are to be made anew must be, from all rows, first.
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
      -- What an instance admitted by a clock that was ahead may be settled again: it goes when that time has come.
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
    if v_until > r.usage_before and removal_ready() then
      update removal set usage_before = v_until, usage_said_at = clock_timestamp() where id = 1;
    end if;
  end if;
end $$;

-- Counts settlements that are refused since requests of their time are removed, but for those whose rows are still there.
create or replace function removal_refused(p_instance text, p_epoch integer, p_settled json, p_before timestamptz) returns void
language sql set enable_seqscan = off as $$
  insert into refused_settlement as r (instance_id, epoch, requests, charged_nano_usd)
    select p_instance, p_epoch, count(*), coalesce(sum(x.charged), 0)
      from json_to_recordset(p_settled) as x(id uuid, charged bigint, at double precision)
      where to_timestamp(x.at / 1000.0) < p_before and not exists (select 1 from usage_event e where e.request_id = x.id)
      having count(*) > 0
    on conflict (instance_id, epoch) do update
      set requests = r.requests + excluded.requests, charged_nano_usd = r.charged_nano_usd + excluded.charged_nano_usd, at = now()
$$;
