-- Checks the books: the sums of sealed days plus all rows after them. Reads in the snapshot of the calling statement
-- (the function is stable), so that running traffic does not disturb the check.
create or replace function books_check() returns table (name text, broken bigint, example text)
language plpgsql stable as $$
declare
  s seal_cursor;
  nobody constant uuid := '00000000-0000-0000-0000-000000000000';
begin
  select * into s from seal_cursor x where x.id = 1;
  if not found then
    s.entries_from := '-infinity'; s.usage_at := '-infinity'; s.usage_id := nobody; s.op_at := '-infinity'; s.op_id := nobody;
  end if;
  return query
  with leases as (
    select u.budget_id, sum(u.drawn) as drawn from (
      select l.budget_id, case when l.state = 'open' then l.granted_nano_usd - l.returned_nano_usd else l.settled_nano_usd end as drawn
        from lease l where not l.sealed
      union all select b.budget_id, b.spent_nano_usd from sealed_budget b
    ) u group by 1
  ), entries as (
    select u.account_id, sum(u.nano) as credit from (
      select e.account_id, e.amount_nano_usd as nano from ledger_entry e where e.created_at >= s.entries_from
      union all select b.budget_id, b.entries_nano_usd from sealed_budget b
    ) u group by 1
  ), operations as (
    select u.budget_id, u.instance_id, u.epoch, sum(u.granted) as granted, sum(u.returned) as returned from (
      select o.budget_id, o.instance_id, o.epoch, case o.kind when 'grant' then o.amount_nano_usd else 0 end as granted,
        case o.kind when 'return' then o.amount_nano_usd else 0 end as returned
        from lease_op o where o.at >= s.op_at and (o.at, o.id) > (s.op_at, s.op_id)
      union all select x.budget_id, x.instance_id, x.epoch, x.granted_nano_usd, x.returned_nano_usd from sealed_lease x
    ) u group by 1, 2, 3
  ), open_usage as materialized (
    select e.account_id, e.key_id, e.budgets, e.instance_id, e.epoch, e.charged_nano_usd as nano
      from usage_event e where e.settled_at >= s.usage_at and (e.settled_at, e.request_id) > (s.usage_at, s.usage_id)
  ), charges as (
    select u.budget_id, u.instance_id, u.epoch, sum(u.nano) as charged from (
      select e.account_id as budget_id, e.instance_id, e.epoch, e.nano from open_usage e
      union all select e.key_id, e.instance_id, e.epoch, e.nano from open_usage e
      union all select f.id, e.instance_id, e.epoch, e.nano from open_usage e, unnest(e.budgets) f(id)
      union all select x.budget_id, x.instance_id, x.epoch, x.charged_nano_usd from sealed_lease x
    ) u group by 1, 2, 3
  ), found as (
    select 'an account''s credit is the sum of its ledger entries' as check_name, b.id as what
    from budget b left join entries e on e.account_id = b.id where b.kind = 'account' and b.limit_nano_usd <> coalesce(e.credit, 0)
    union all
    select 'a budget''s drawn amount equals what its leases hold and have spent', b.id
    from budget b left join leases l on l.budget_id = b.id where b.drawn_nano_usd <> coalesce(l.drawn, 0)
    union all
    select 'no budget is overdrawn', b.id
    from budget b where b.kind = 'account' and b.drawn_nano_usd > b.limit_nano_usd and b.drawn_nano_usd > b.limit_nano_usd + (
      select coalesce(sum(-e.amount_nano_usd), 0) from ledger_entry e where e.account_id = b.id and e.kind = 'dispute')
    union all
    select 'granted and returned amounts are the sums of their operations', l.budget_id || ' ' || l.instance_id || ' ' || l.epoch
    from lease l left join operations o using (budget_id, instance_id, epoch)
    where not l.sealed and (l.granted_nano_usd <> coalesce(o.granted, 0) or l.returned_nano_usd <> coalesce(o.returned, 0))
    union all
    select 'a lease''s settled amount is the sum of its charges', l.budget_id || ' ' || l.instance_id || ' ' || l.epoch
    from lease l left join charges c using (budget_id, instance_id, epoch) where not l.sealed and l.settled_nano_usd <> coalesce(c.charged, 0)
    union all
    select 'every charge has its lease', c.budget_id || ' ' || c.instance_id || ' ' || c.epoch
    from charges c left join lease l on l.budget_id = c.budget_id and l.instance_id = c.instance_id and l.epoch = c.epoch and not l.sealed
    where l.budget_id is null and c.charged > 0
    union all
    select 'no lease of an ended instance is open', l.budget_id || ' ' || l.instance_id || ' ' || l.epoch
    from lease l join instance_now i on i.id = l.instance_id and i.epoch = l.epoch where l.state = 'open' and i.state = 'left'
    union all
    select 'no settled request is still shown as running', r.request_id::text
    from reservation r join usage_event u on u.request_id = r.request_id
    union all
    select 'every confirmed top-up is booked once, and no other top-up is booked', t.id
    from top_up t left join ledger_entry e on e.source_ref = 'topup:' || t.id and e.kind = 'top_up'
    where t.state in ('confirmed', 'refunded', 'disputed') and (t.decided_at >= s.entries_from or t.decided_at is null)
      and t.amount_nano_usd is distinct from e.amount_nano_usd
    union all
    select 'every confirmed top-up is booked once, and no other top-up is booked', e.id
    from ledger_entry e left join top_up t on t.id = substr(e.source_ref, 7)
    where e.created_at >= s.entries_from and e.kind = 'top_up' and (e.source_ref not like 'topup:%' or t.amount_nano_usd is distinct from e.amount_nano_usd)
    union all
    select 'the spending of leases matches the seals of their days', x.leases || ' and ' || x.days from (
      select coalesce(sum(u.nano), 0) as leases,
        (select coalesce(sum(d.charged_nano_usd), 0) from sealed_day d) + coalesce(s.charged_nano_usd, 0) as days
      from budget b join (
        select y.budget_id, y.spent_nano_usd as nano from sealed_budget y union all select y.budget_id, y.charged_nano_usd from sealed_lease y
      ) u on u.budget_id = b.id where b.kind = 'account'
    ) x where x.leases <> x.days
    union all
    select 'every closed day matches its seal', d.day::text || E'\n' || d.problem from sealed_day d where d.problem is not null
    union all
    select 'every closed day matches its seal', b.budget_id || E'\n' || b.problem from sealed_budget b where b.problem is not null
    union all
    select 'each seal matches the previous seal', d.day::text from (
      select x.day, x.seal, books_seal_of(x, lag(x.seal) over by_day) as made
      from sealed_day x window by_day as (order by x.day)
    ) d where d.seal <> d.made
    union all
    select 'each seal matches the previous seal', s.day::text
    where s.day is not null and (select max(d.day) from sealed_day d) is distinct from
      case when s.entries_from > '-infinity' then s.day - 1 end
  )
  select n.name, count(f.what), min(f.what)
  from (values
    ('an account''s credit is the sum of its ledger entries'),
    ('a budget''s drawn amount equals what its leases hold and have spent'),
    ('no budget is overdrawn'),
    ('granted and returned amounts are the sums of their operations'),
    ('a lease''s settled amount is the sum of its charges'),
    ('every charge has its lease'),
    ('no lease of an ended instance is open'),
    ('no settled request is still shown as running'),
    ('every confirmed top-up is booked once, and no other top-up is booked'),
    ('the spending of leases matches the seals of their days'),
    ('every closed day matches its seal'),
    ('each seal matches the previous seal')
  ) n(name) left join found f on f.check_name = n.name group by n.name order by n.name;
end $$;

-- Verifies up to p_limit rows of sealed days against their seals, oldest day first, then the budgets; after that a new
-- pass starts. A difference is stored in the day's row until the rows match again. For a day whose requests were
-- deleted, only ledger entries are read; books_check covers its sums.
-- - `more`: call again now.
-- - `rest`: the pass is complete; the next pass starts an hour after this one started.
-- - `busy`: another call runs.
create or replace function books_verify(p_limit integer, out state text, out seen bigint)
language plpgsql set enable_seqscan = off as $$
declare
  r seal_round;
  u record;
  d sealed_day;
  v_start timestamptz;
  v_end timestamptz;
begin
  seen := 0;
  -- Prevents the deletion of the day's requests while they are read.
  perform pg_advisory_xact_lock_shared(hashtextextended('usage is read again', 0));
  delete from seal_round x where x.started_at < clock_timestamp() - interval '1 hour' and not exists (select 1 from sealed_day y where y.day >= x.day)
    and not exists (select 1 from sealed_budget b where b.budget_id > x.budget_id);
  insert into seal_round (id, day, usage_at, usage_id, usage_hash)
    select 1, min(x.day), '-infinity', '00000000-0000-0000-0000-000000000000', ''::bytea from sealed_day x having min(x.day) is not null
    on conflict do nothing;
  select * into r from seal_round x where x.id = 1 for update skip locked;
  if not found then
    state := case when exists (select 1 from sealed_day) then 'busy' else 'rest' end;
    return;
  end if;
  select * into d from sealed_day x where x.day >= r.day order by x.day limit 1;
  if not found then
    seen := books_verify_budgets(p_limit);
    state := case when seen = p_limit then 'more' else 'rest' end;
    return;
  end if;
  state := 'more';
  v_start := case when exists (select 1 from sealed_day x where x.day < d.day) then d.day::timestamp at time zone 'UTC' else '-infinity' end;
  v_end := (d.day + 1)::timestamp at time zone 'UTC';
  if v_end <= (select x.usage_frozen from removal x where x.id = 1) then
    update sealed_day x set verified_at = clock_timestamp(), problem = books_entries_problem(x, v_start) where x.day = d.day;
    update seal_round x set day = d.day + 1, usage_at = v_end, usage_id = '00000000-0000-0000-0000-000000000000', usage_rows = 0,
      charged_nano_usd = 0, written_off_nano_usd = 0, usage_hash = ''::bytea where x.id = 1;
    return;
  end if;
  select * into u from books_usage(greatest(r.usage_at, v_start), r.usage_id, v_end, p_limit, r.usage_hash);
  seen := u.seen;
  if u.seen = p_limit then
    update seal_round x set usage_at = u.at, usage_id = u.id, usage_rows = x.usage_rows + u.counted, charged_nano_usd = x.charged_nano_usd + u.charged,
      written_off_nano_usd = x.written_off_nano_usd + u.written_off, usage_hash = u.hash where x.id = 1;
    return;
  end if;
  update sealed_day x set verified_at = clock_timestamp(),
    problem = books_problem(x, v_start, r.usage_rows + u.counted, r.charged_nano_usd + u.charged, r.written_off_nano_usd + u.written_off, u.hash)
    where x.day = d.day;
  update seal_round x set day = d.day + 1, usage_at = v_end, usage_id = '00000000-0000-0000-0000-000000000000', usage_rows = 0,
    charged_nano_usd = 0, written_off_nano_usd = 0, usage_hash = ''::bytea where x.id = 1;
end $$;

-- Compares up to p_limit sealed budgets with their entries and leases, continuing the current pass. Returns the number
-- of budgets.
create or replace function books_verify_budgets(p_limit integer) returns bigint
language sql set enable_seqscan = off as $$
  with page as materialized (
    select b.budget_id, b.entries_nano_usd, b.spent_nano_usd, b.removed_nano_usd, s.entries_from from seal_round r, seal_cursor s, lateral (
      select * from sealed_budget x where x.budget_id > r.budget_id order by x.budget_id limit p_limit
    ) b where r.id = 1 and s.id = 1
  ), looked as (
    select p.budget_id, case
      when p.entries_nano_usd <> (select coalesce(sum(e.amount_nano_usd), 0) from ledger_entry e
        where e.account_id = p.budget_id and e.created_at < p.entries_from) then 'the sealed ledger entries have another total'
      when p.spent_nano_usd <> p.removed_nano_usd + (select coalesce(sum(l.settled_nano_usd), 0) from lease l
        where l.budget_id = p.budget_id and l.sealed) then 'the sealed leases have another total'
      end as problem from page p
  ), told as (
    update sealed_budget b set problem = k.problem from looked k where b.budget_id = k.budget_id and b.problem is distinct from k.problem
  ), moved as (
    update seal_round r set budget_id = last.budget_id from (select max(p.budget_id) as budget_id from page p) last
      where r.id = 1 and last.budget_id is not null
  )
  select count(*) from page
$$;

-- Describes how a day's rows differ from its seal; null if they match.
create or replace function books_problem(d sealed_day, p_start timestamptz, p_rows bigint, p_charged bigint, p_written_off bigint, p_hash bytea)
returns text
language plpgsql set enable_seqscan = off as $$
begin
  if p_rows <> d.usage_rows then
    return 'the number of settled requests differs from the sealed number';
  end if;
  if (p_charged, p_written_off, p_hash) is distinct from (d.charged_nano_usd, d.written_off_nano_usd, d.usage_hash) then
    return 'a settled request was changed';
  end if;
  return books_entries_problem(d, p_start);
end $$;

-- Like books_problem, but checks only the day's ledger entries.
create or replace function books_entries_problem(d sealed_day, p_start timestamptz) returns text
language plpgsql set enable_seqscan = off as $$
declare
  e record;
  v_end timestamptz := (d.day + 1)::timestamp at time zone 'UTC';
begin
  select * into e from books_entries(p_start, v_end);
  if (e.counted, e.top_ups, e.refunds, e.adjustments, e.disputes, e.credit_notes, e.hash) is distinct from
      (d.entry_rows, d.top_up_nano_usd, d.refund_nano_usd, d.adjustment_nano_usd, d.dispute_nano_usd, d.credit_note_nano_usd, d.entry_hash) then
    return 'the ledger entries were changed';
  end if;
  if exists (
      select 1 from ledger_entry x left join top_up t on t.id = substr(x.source_ref, 7)
        where x.created_at >= p_start and x.created_at < v_end and x.kind = 'top_up' and t.amount_nano_usd is distinct from x.amount_nano_usd
      union all
      select 1 from top_up t left join ledger_entry x on x.source_ref = 'topup:' || t.id and x.kind = 'top_up'
        where t.state in ('confirmed', 'refunded', 'disputed') and t.decided_at >= p_start and t.decided_at < v_end
          and t.amount_nano_usd is distinct from x.amount_nano_usd) then
    return 'a confirmed top-up and its ledger entry differ';
  end if;
  return null;
end $$;
