-- Past days of the ledger are summed, hashed, sealed and later verified. A call reads up to its limit of rows, except
-- that it reads all ledger entries of a day. Calls are repeatable and exclude each other by the row of `seal_cursor` or
-- `seal_round`. enable_seqscan = off: these tables grow for ever, and each call reads only a part.

-- True if no new row can get a time before p_end: p_end is at least p_margin ago, and every transaction that started
-- before p_end has ended.
create or replace function books_closed(p_end timestamptz, p_margin interval default '1 hour') returns boolean
language sql as $$
  select clock_timestamp() > p_end + p_margin and not exists (
    select 1 from pg_stat_activity a where a.datname = current_database() and a.backend_type = 'client backend' and a.xact_start < p_end)
$$;

create or replace function books_link(p_state bytea, p_start bytea, p_row text) returns bytea
language sql immutable as $$
  select sha256(coalesce(p_state, p_start) || convert_to(p_row, 'UTF8'))
$$;
-- Hash chain: SHA-256 of the previous hash and a row, row by row, so that the result does not depend on batch sizes.
-- Null without rows.
create or replace aggregate books_chain(bytea, text) (sfunc = books_link, stype = bytea);

create or replace function books_micros(p_at timestamptz) returns bigint
language sql immutable as $$
  select (extract(epoch from p_at) * 1000000)::bigint
$$;

-- A row as the text that is hashed. `archive-columns.ts` in src/ledger builds the same text from archive files.
create or replace function books_usage_row(e usage_event) returns text
language sql stable as $$
  select json_build_array(e.request_id, e.account_id, e.key_id, e.instance_id, e.epoch, e.model, e.rate_card_id, e.endpoint, e.streamed,
    e.reserved_nano_usd, e.charged_nano_usd, e.written_off_nano_usd, e.basis, e.ending, e.status, e.prompt_tokens, e.cached_tokens,
    e.completion_tokens, e.reasoning_tokens, e.units, e.replica, e.batch_id, books_micros(e.admitted_at),
    encode(float4send(e.first_token_ms), 'hex'), encode(float4send(e.duration_ms), 'hex'), books_micros(e.settled_at))::text
$$;

create or replace function books_entry_row(e ledger_entry) returns text
language sql stable as $$
  select json_build_array(e.id, e.account_id, e.kind, e.amount_nano_usd, e.source_ref, e.actor, e.note, books_micros(e.created_at))::text
$$;

-- Settled requests after (p_at, p_id) and before p_end, in order, at most p_limit. Returns the position of the last
-- request, the number read, the number that count, their sums, and the hash chain continued from p_hash. Without
-- requests, the position is (p_at, p_id).
create or replace function books_usage(p_at timestamptz, p_id uuid, p_end timestamptz, p_limit integer, p_hash bytea,
  out at timestamptz, out id uuid, out seen bigint, out counted bigint, out charged bigint, out written_off bigint, out hash bytea)
language sql stable set enable_seqscan = off as $$
  with rows as materialized (
    select e, e.settled_at, e.request_id, e.rate_card_id, e.charged_nano_usd, e.written_off_nano_usd
      from usage_event e where e.settled_at >= p_at and (e.settled_at, e.request_id) > (p_at, p_id) and e.settled_at < p_end
      order by e.settled_at, e.request_id limit p_limit
  ), last as (
    select r.settled_at, r.request_id from rows r order by r.settled_at desc, r.request_id desc limit 1
  ), sums as (
    -- A request that was recorded as lost has neither rate card nor charge. It does not count, because a late
    -- settlement may replace it.
    select count(*) as n, coalesce(sum(r.charged_nano_usd), 0) as charged, coalesce(sum(r.written_off_nano_usd), 0) as off,
      books_chain(p_hash, books_usage_row(r.e) order by r.settled_at, r.request_id) as hash
    from rows r where r.rate_card_id <> ''
  )
  select coalesce((select l.settled_at from last l), p_at), coalesce((select l.request_id from last l), p_id),
    (select count(*) from rows), s.n, s.charged::bigint, s.off::bigint, coalesce(s.hash, p_hash) from sums s
$$;

-- Sums of the ledger entries from p_from until p_end, and their hash chain.
create or replace function books_entries(p_from timestamptz, p_end timestamptz, out counted bigint, out top_ups bigint, out refunds bigint,
  out adjustments bigint, out disputes bigint, out credit_notes bigint, out hash bytea)
language sql stable set enable_seqscan = off as $$
  select count(*), coalesce(sum(e.amount_nano_usd) filter (where e.kind = 'top_up'), 0)::bigint,
    coalesce(sum(e.amount_nano_usd) filter (where e.kind = 'refund'), 0)::bigint,
    coalesce(sum(e.amount_nano_usd) filter (where e.kind in ('adjustment', 'promotion')), 0)::bigint,
    coalesce(sum(e.amount_nano_usd) filter (where e.kind = 'dispute'), 0)::bigint,
    coalesce(sum(e.amount_nano_usd) filter (where e.kind = 'credit_note'), 0)::bigint,
    coalesce(books_chain(''::bytea, books_entry_row(e) order by e.created_at, e.id collate "C"), ''::bytea)
  from ledger_entry e where e.created_at >= p_from and e.created_at < p_end
$$;

-- The text whose SHA-256 hash is the day's seal.
create or replace function books_sealed(d sealed_day, p_former bytea) returns text
language sql stable as $$
  select json_build_array('tollgate day 1', d.day, d.usage_rows, d.charged_nano_usd, d.written_off_nano_usd,
    encode(d.usage_hash, 'hex'), d.entry_rows, d.top_up_nano_usd, d.refund_nano_usd, d.adjustment_nano_usd, d.dispute_nano_usd,
    d.credit_note_nano_usd, encode(d.entry_hash, 'hex'), d.granted_nano_usd, d.returned_nano_usd,
    coalesce(encode(p_former, 'hex'), ''))::text
$$;

create or replace function books_seal_of(d sealed_day, p_former bytea) returns bytea
language sql stable as $$
  select sha256(convert_to(books_sealed(d, p_former), 'UTF8'))
$$;

-- Adds up to p_limit rows to the sums of the next day, and seals the day when it is complete.
-- - `more`: call again now.
-- - `sealed`: a day was sealed.
-- - `idle`: no other day can be sealed yet.
-- - `busy`: another call runs.
create or replace function books_seal(p_limit integer, out state text, out day date)
language plpgsql set enable_seqscan = off as $$
declare
  s seal_cursor;
  u record;
  e record;
  d sealed_day;
  v_end timestamptz;
  v_ops integer;
begin
  if not exists (select 1 from seal_cursor where id = 1) then
    state := case when books_begin() then 'more' else 'idle' end;
    return;
  end if;
  select * into s from seal_cursor where id = 1 for update skip locked;
  if not found then
    state := 'busy';
    return;
  end if;
  day := s.day;
  v_end := (s.day + 1)::timestamp at time zone 'UTC';
  if not books_closed(v_end) then
    state := 'idle';
    return;
  end if;
  select * into u from books_usage(s.usage_at, s.usage_id, v_end, p_limit, s.usage_hash);
  insert into sealed_lease as l (budget_id, instance_id, epoch, charged_nano_usd)
    select b.budget_id, b.instance_id, b.epoch, sum(b.nano) from (
      select unnest(array[r.account_id, r.key_id] || r.budgets) as budget_id, r.instance_id, r.epoch, r.charged_nano_usd as nano from usage_event r
      where r.settled_at >= s.usage_at and r.settled_at <= u.at and r.charged_nano_usd > 0
        and (r.settled_at, r.request_id) > (s.usage_at, s.usage_id) and (r.settled_at, r.request_id) <= (u.at, u.id)
    ) b group by 1, 2, 3
    on conflict (budget_id, instance_id, epoch) do update set charged_nano_usd = l.charged_nano_usd + excluded.charged_nano_usd;
  update seal_cursor x set closed_until = v_end, usage_at = u.at, usage_id = u.id, usage_rows = x.usage_rows + u.counted,
    charged_nano_usd = x.charged_nano_usd + u.charged, written_off_nano_usd = x.written_off_nano_usd + u.written_off, usage_hash = u.hash
    where x.id = 1;
  state := 'more';
  if u.seen = p_limit then
    return;
  end if;
  if books_operations(v_end, p_limit) = p_limit then
    return;
  end if;
  select * into s from seal_cursor where id = 1;
  select * into e from books_entries(s.entries_from, v_end);
  insert into sealed_budget as b (budget_id, entries_nano_usd)
    select x.account_id, sum(x.amount_nano_usd) from ledger_entry x where x.created_at >= s.entries_from and x.created_at < v_end group by 1
    on conflict (budget_id) do update set entries_nano_usd = b.entries_nano_usd + excluded.entries_nano_usd;
  d := (s.day, s.usage_rows, s.charged_nano_usd, s.written_off_nano_usd, s.usage_hash, e.counted, e.top_ups, e.refunds, e.adjustments,
    e.disputes, e.credit_notes, e.hash, s.granted_nano_usd, s.returned_nano_usd, null, clock_timestamp(), null, null, null);
  d.seal := books_seal_of(d, (select p.seal from sealed_day p where p.day = s.day - 1));
  insert into sealed_day select d.*;
  update seal_cursor x set day = s.day + 1, entries_from = v_end, usage_at = v_end, usage_id = '00000000-0000-0000-0000-000000000000',
    op_at = v_end, op_id = '00000000-0000-0000-0000-000000000000', usage_rows = 0, charged_nano_usd = 0, written_off_nano_usd = 0,
    usage_hash = ''::bytea, granted_nano_usd = 0, returned_nano_usd = 0 where x.id = 1;
  state := 'sealed';
end $$;

-- Starts sealing with the day of the oldest row, once that day can get no new rows. False if there are no rows.
create or replace function books_begin() returns boolean
language plpgsql set enable_seqscan = off as $$
declare
  v_first timestamptz := least((select min(e.settled_at) from usage_event e), (select min(e.created_at) from ledger_entry e),
    (select min(o.at) from lease_op o));
begin
  if v_first is null or not books_closed(date_trunc('day', v_first, 'UTC') + interval '1 day') then
    return false;
  end if;
  insert into seal_cursor (id, day, entries_from, closed_until, usage_at, usage_id, usage_hash, op_at, op_id)
    values (1, (v_first at time zone 'UTC')::date, '-infinity', '-infinity', '-infinity', '00000000-0000-0000-0000-000000000000', ''::bytea,
      '-infinity', '00000000-0000-0000-0000-000000000000')
    on conflict do nothing;
  return true;
end $$;

-- Adds up to p_limit lease operations before p_end to the day's sums. Returns the number of operations.
create or replace function books_operations(p_end timestamptz, p_limit integer) returns integer
language sql set enable_seqscan = off as $$
  with rows as materialized (
    select o.* from seal_cursor s, lateral (
      select x.* from lease_op x where x.at >= s.op_at and (x.at, x.id) > (s.op_at, s.op_id) and x.at < p_end order by x.at, x.id limit p_limit
    ) o where s.id = 1
  ), leases as (
    insert into sealed_lease as l (budget_id, instance_id, epoch, granted_nano_usd, returned_nano_usd)
      select r.budget_id, r.instance_id, r.epoch, coalesce(sum(r.amount_nano_usd) filter (where r.kind = 'grant'), 0),
        coalesce(sum(r.amount_nano_usd) filter (where r.kind = 'return'), 0) from rows r where r.amount_nano_usd <> 0 group by 1, 2, 3
      on conflict (budget_id, instance_id, epoch) do update
        set granted_nano_usd = l.granted_nano_usd + excluded.granted_nano_usd, returned_nano_usd = l.returned_nano_usd + excluded.returned_nano_usd
  ), moved as (
    update seal_cursor s set op_at = last.at, op_id = last.id,
      granted_nano_usd = s.granted_nano_usd + (select coalesce(sum(r.amount_nano_usd) filter (where r.kind = 'grant'), 0) from rows r),
      returned_nano_usd = s.returned_nano_usd + (select coalesce(sum(r.amount_nano_usd) filter (where r.kind = 'return'), 0) from rows r)
      from (select r.at, r.id from rows r order by r.at desc, r.id desc limit 1) last where s.id = 1
  )
  select count(*)::integer from rows
$$;

-- Seals up to p_limit leases of ended epochs whose rows are all in sealed days. Returns the number of leases.
create or replace function books_seal_leases(p_limit integer) returns integer
language sql set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
  with found as materialized (
    select l.budget_id, l.instance_id, l.epoch, l.settled_nano_usd
      from lease l join instance_now i on i.id = l.instance_id and i.epoch = l.epoch and i.state = 'left'
        join sealed_lease x on x.budget_id = l.budget_id and x.instance_id = l.instance_id and x.epoch = l.epoch
      where not l.sealed and l.state = 'closed' and l.settled_nano_usd = x.charged_nano_usd
        and l.granted_nano_usd = x.granted_nano_usd and l.returned_nano_usd = x.returned_nano_usd
      limit p_limit for update of l skip locked
  ), spent as (
    insert into sealed_budget as b (budget_id, spent_nano_usd) select f.budget_id, sum(f.settled_nano_usd) from found f group by 1
      on conflict (budget_id) do update set spent_nano_usd = b.spent_nano_usd + excluded.spent_nano_usd
  ), gone as (
    delete from sealed_lease x using found f where x.budget_id = f.budget_id and x.instance_id = f.instance_id and x.epoch = f.epoch
  ), marked as (
    update lease l set sealed = true from found f where l.budget_id = f.budget_id and l.instance_id = f.instance_id and l.epoch = f.epoch
  )
  select count(*)::integer from found
$$;
