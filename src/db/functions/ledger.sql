-- Spending and payments. Each function is called as an autocommit statement and is repeatable. enable_seqscan = off:
-- plans are kept from the first calls, when tables are empty. Settlements wait for no row lock (lease.sql): a batch
-- leaves out settlements with a locked row, and a late settlement is refused. A booking waits for its account's row, at
-- most the client's lock_timeout.

-- The single element of a column, which stands for all settlements of the batch; null if there are several elements.
create or replace function of_all(p_column anyarray) returns anyelement
language sql immutable as $$
  select case when cardinality(p_column) = 1 then p_column[1] end
$$;

-- A column with one element per settlement; repeats a single element p_many times.
create or replace function for_all(p_column anyarray, p_many integer) returns anyarray
language sql immutable as $$
  select case when cardinality(p_column) = 1 then array_fill(p_column[1], array[p_many]) else p_column end
$$;

-- Records settled requests and running ones. Repeated settlements change nothing. Each column is an array, in which a
-- single element stands for all settlements (settled-columns.ts). p_budgets: array literals, or null.
--
-- Requests admitted before removal.usage_before are left out and counted. An epoch that started after that time had a
-- wrong clock, so its requests count as admitted at its start.
--
-- Returns:
-- - late: the leases are being closed and nothing was recorded; send each settlement to ledger_settle_late.
-- - fresh: number of new settlements.
-- - busy: budgets and requests with a locked row; their settlements were left out, all others were recorded.
--
-- Arrays are unnested in the select list; in the from clause each would be stored first, and JSON records cost three
-- times as much. Rows are looked up one by one, by key or ctid, because the planner cannot estimate the sets and would
-- join each row with all.
create or replace function lease_settle(p_instance text, p_epoch integer, p_id uuid[], p_account text[], p_key text[], p_model text[],
  p_card text[], p_endpoint text[], p_streamed boolean[], p_reserved bigint[], p_charged bigint[], p_off bigint[], p_basis text[],
  p_ending text[], p_status integer[], p_prompt_tokens integer[], p_cached_tokens integer[], p_completion_tokens integer[],
  p_reasoning_tokens integer[], p_units integer[], p_replica text[], p_batch text[], p_at double precision[], p_first real[], p_ms real[],
  p_budgets text[], p_open json)
returns table (late boolean, fresh integer, busy json)
language plpgsql set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_material = off as $$
declare
  v_busy text[];
  v_shown uuid[];
  v_budgets text[];
  v_nano bigint[];
  v_missing text;
  v_out bigint[]; -- positions in the batch of settlements that are left out
  v_left integer;
  v_at timestamptz := books_now();
  v_before timestamptz := coalesce((select m.usage_before from removal m where m.id = 1), '-infinity');
  v_began timestamptz;
  v_many integer := cardinality(p_id);
  -- Values that are equal for all settlements; null if they differ.
  v_model text; v_card text; v_endpoint text; v_streamed boolean; v_reserved bigint; v_batch text; v_off bigint; v_basis text;
  v_ending text; v_status integer; v_prompt_tokens integer; v_cached_tokens integer; v_completion_tokens integer;
  v_reasoning_tokens integer; v_units integer; v_replica text; v_first real; v_ms real;
begin
  late := false; fresh := 0; busy := '[]';
  -- A repeated flush may arrive while its first attempt still runs. The lock makes the repetition wait; otherwise it
  -- would record requests as running that the first attempt settles.
  perform pg_advisory_xact_lock(hashtextextended('flush ' || p_instance || ' ' || p_epoch, 0));
  perform pg_advisory_xact_lock_shared(hashtextextended('money ' || p_instance || ' ' || p_epoch, 0));
  if not exists (select 1 from instance_now i where i.id = p_instance and i.epoch = p_epoch and i.state not in ('closing', 'left')) then
    late := true;
    return next;
    return;
  end if;
  p_account := for_all(p_account, v_many); p_key := for_all(p_key, v_many); p_at := for_all(p_at, v_many);
  p_charged := for_all(p_charged, v_many); p_budgets := for_all(p_budgets, v_many);
  v_model := of_all(p_model); v_card := of_all(p_card); v_endpoint := of_all(p_endpoint); v_streamed := of_all(p_streamed);
  v_reserved := of_all(p_reserved); v_batch := of_all(p_batch); v_off := of_all(p_off); v_basis := of_all(p_basis);
  v_ending := of_all(p_ending); v_status := of_all(p_status); v_prompt_tokens := of_all(p_prompt_tokens);
  v_cached_tokens := of_all(p_cached_tokens); v_completion_tokens := of_all(p_completion_tokens); v_reasoning_tokens := of_all(p_reasoning_tokens); v_units := of_all(p_units);
  v_replica := of_all(p_replica); v_first := of_all(p_first); v_ms := of_all(p_ms);
  if v_before > '-infinity' and exists (select 1 from unnest(p_at) u(at) where to_timestamp(u.at / 1000.0) < v_before) then
    v_began := removal_began_after(p_instance, p_epoch, v_before);
    if v_began is not null then
      p_at := array(select case when to_timestamp(u.at / 1000.0) < v_before then extract(epoch from v_began) * 1000 else u.at end
        from unnest(p_at) with ordinality u(at, place) order by u.place);
    end if;
  end if;
  with x as materialized (
    select unnest(p_id) as id, unnest(p_account) as account, unnest(p_key) as key, unnest(p_budgets)::text[] as budgets,
      unnest(p_charged) as charged
  ), wanted as materialized (
    select b.budget_id, sum(b.charged)::bigint as nano from (
      select x.account as budget_id, x.charged from x union all select x.key, x.charged from x
      union all select unnest(x.budgets), x.charged from x where x.budgets is not null
    ) b where b.charged > 0 group by 1
  ), held_leases as materialized (
    select w.budget_id from wanted w left join lateral (
        select true as locked from lease l where l.budget_id = w.budget_id and l.instance_id = p_instance and l.epoch = p_epoch
          for no key update skip locked
      ) k on true cross join lateral (
        select 1 from lease l where l.budget_id = w.budget_id and l.instance_id = p_instance and l.epoch = p_epoch and k.locked is null limit 1
      ) there
  ), running as materialized (
    -- Looks up each reservation separately: most of these requests have none, because they ended before a flush.
    select x.id from x cross join lateral (select 1 from reservation r where r.request_id = x.id limit 1) there
      where exists (select 1 from reservation)
  ), shown as materialized (
    select n.id, k.locked from running n left join lateral (
        select true as locked from reservation r where r.request_id = n.id for update skip locked
      ) k on true
  )
  select array_agg(h.held), (select array_agg(s.id) from shown s where s.locked), (select array_agg(w.budget_id) from wanted w),
    (select array_agg(w.nano) from wanted w) into v_busy, v_shown, v_budgets, v_nano from (
    select l.budget_id as held from held_leases l union all select s.id::text from shown s where s.locked is null
  ) h;
  if v_busy is not null or v_before > '-infinity' then
    select array_agg(x.place) into v_out
      from unnest(p_id, p_account, p_key, p_budgets, p_at) with ordinality x(id, account, key, budgets, at, place)
      where (array[x.account, x.key, x.id::text] || x.budgets::text[]) && v_busy or to_timestamp(x.at / 1000.0) < v_before;
  end if;
  -- Inserts without first looking for known requests, because a look-up would take a fifth of the time and hardly ever
  -- find one. After a unique violation, removes the known requests and repeats the insert.
  loop
    begin
      insert into usage_event (request_id, account_id, key_id, instance_id, epoch, model, rate_card_id, endpoint, streamed,
          reserved_nano_usd, charged_nano_usd, written_off_nano_usd, basis, ending, status, prompt_tokens, cached_tokens,
          completion_tokens, reasoning_tokens, units, replica, batch_id, budgets, project_id, admitted_at, first_token_ms, duration_ms, settled_at)
        select x.id, x.account, x.key, p_instance, p_epoch, coalesce(v_model, x.model), coalesce(v_card, x.card),
          coalesce(v_endpoint, x.endpoint), coalesce(v_streamed, x.streamed), coalesce(v_reserved, x.reserved), x.charged,
          coalesce(v_off, x.off), coalesce(v_basis, x.basis), coalesce(v_ending, x.ending), coalesce(v_status, x.status),
          coalesce(v_prompt_tokens, x.prompt_tokens), coalesce(v_cached_tokens, x.cached_tokens),
          coalesce(v_completion_tokens, x.completion_tokens), coalesce(v_reasoning_tokens, x.reasoning_tokens),
          coalesce(v_units, x.units), coalesce(v_replica, x.replica), coalesce(v_batch, x.batch),
          x.budgets, budgets_project(x.budgets), to_timestamp(x.at / 1000.0), coalesce(v_first, x.first), coalesce(v_ms, x.ms), v_at
        from (
          select unnest(p_id) as id, unnest(p_account) as account, unnest(p_key) as key, unnest(p_model) as model, unnest(p_card) as card,
            unnest(p_endpoint) as endpoint, unnest(p_streamed) as streamed, unnest(p_reserved) as reserved, unnest(p_charged) as charged,
            unnest(p_off) as off, unnest(p_basis) as basis, unnest(p_ending) as ending, unnest(p_status) as status,
            unnest(p_prompt_tokens) as prompt_tokens, unnest(p_cached_tokens) as cached_tokens,
            unnest(p_completion_tokens) as completion_tokens, unnest(p_reasoning_tokens) as reasoning_tokens, unnest(p_units) as units,
            unnest(p_replica) as replica, unnest(p_batch) as batch, unnest(p_at) as at, unnest(p_first) as first, unnest(p_ms) as ms,
            unnest(p_budgets)::text[] as budgets, generate_subscripts(p_id, 1) as place
        ) x
        where v_out is null or x.place <> all (v_out);
      get diagnostics fresh = row_count;
      exit;
    exception when unique_violation then
      v_left := coalesce(cardinality(v_out), 0);
      select array_agg(x.place) into v_out from (
        select u.place, u.id, row_number() over (partition by u.id order by u.place) as nth from unnest(p_id) with ordinality u(id, place)
      ) x where x.place = any (v_out) or x.nth > 1 or exists (select 1 from usage_event e where e.request_id = x.id);
      if coalesce(cardinality(v_out), 0) = v_left then
        raise;
      end if;
    end;
  end loop;
  if v_out is not null then
    select array_agg(t.budget_id), array_agg(t.nano) into v_budgets, v_nano from (
      select b.budget_id, sum(b.charged)::bigint as nano from (
        with x as materialized (
          select u.account, u.key, u.budgets::text[] as budgets, u.charged
            from unnest(p_account, p_key, p_budgets, p_charged) with ordinality u(account, key, budgets, charged, place) where u.place <> all (v_out)
        )
        select x.account as budget_id, x.charged from x union all select x.key, x.charged from x
        union all select unnest(x.budgets), x.charged from x where x.budgets is not null
      ) b where b.charged > 0 group by 1) t;
  end if;
  with spent as (
    update lease l set settled_nano_usd = l.settled_nano_usd + u.nano,
        state = case when l.granted_nano_usd - l.returned_nano_usd - l.settled_nano_usd = u.nano then 'closed' else l.state end
      from unnest(v_budgets, v_nano) u(budget_id, nano) cross join lateral (
        select k.ctid as place from lease k where k.budget_id = u.budget_id and k.instance_id = p_instance and k.epoch = p_epoch limit 1
      ) k where l.ctid = k.place and l.state = 'open'
      returning l.budget_id
  )
  select min(m.budget_id) from (select unnest(v_budgets) as budget_id except select budget_id from spent) m into v_missing;
  if v_missing is not null then
    raise exception 'no open lease of % to settle on', v_missing using errcode = 'check_violation', constraint = 'lease_covers_settled';
  end if;
  if v_before > '-infinity' then
    perform removal_refused(p_instance, p_epoch, p_id, p_charged, p_at, v_before);
  end if;
  if v_shown is not null then
    delete from reservation r where r.request_id = any (v_shown)
      and (v_busy is null or not (r.account_id = any (v_busy) or r.key_id = any (v_busy) or exists (
        select 1 from unnest(p_id, p_budgets) x(id, budgets) where x.id = r.request_id and x.budgets::text[] && v_busy)));
  end if;
  insert into reservation (request_id, account_id, key_id, instance_id, epoch, model, reserved_nano_usd, admitted_at, project_id)
    select x.id, x.account, x.key, p_instance, p_epoch, x.model, x.reserved, to_timestamp(x.at / 1000.0), budgets_project(x.budgets)
    from json_to_recordset(p_open) as x(id uuid, account text, key text, model text, reserved bigint, at double precision, budgets text[])
    where not exists (select 1 from usage_event e where e.request_id = x.id)
    on conflict do nothing;
  if v_busy is not null then
    busy := to_json(v_busy);
  end if;
  return next;
end $$;

-- Records a settlement of an instance whose leases are closed or being closed.
-- - The settlement first spends what the epoch's own leases have left, then available credit.
-- - The rest is written off, so no budget exceeds its limit and no usage is refused.
-- - Usage of accounts and keys that a restored database does not have is written off too.
-- - Requests admitted before removal.usage_before are counted and not charged.
-- - Raises lock_not_available if a row is locked: the client retries.
create or replace function ledger_settle_late(p_instance text, p_epoch integer, p_event json) returns bigint
language plpgsql set enable_seqscan = off as $$
declare
  x record;
  part record;
  v_fit bigint;
  v_budgets text[];
  v_closing boolean;
  v_before timestamptz := coalesce((select m.usage_before from removal m where m.id = 1), '-infinity');
  v_admitted timestamptz;
begin
  select * into x from json_to_record(p_event) as x(id uuid, account text, key text, model text, card text, endpoint text, streamed boolean,
    reserved bigint, charged bigint, "off" bigint, basis text, ending text, status integer, "promptTokens" integer, "cachedTokens" integer,
    "completionTokens" integer, "reasoningTokens" integer, units integer, replica text, batch text, budgets text[], at double precision, first real, ms real);
  v_budgets := array[x.account, x.key] || x.budgets;
  v_admitted := to_timestamp(x.at / 1000.0);
  if v_admitted < v_before then
    v_admitted := coalesce(removal_began_after(p_instance, p_epoch, v_before), v_admitted);
  end if;
  perform pg_advisory_xact_lock_shared(hashtextextended('money ' || p_instance || ' ' || p_epoch, 0));
  if v_admitted < v_before then
    perform removal_refused(p_instance, p_epoch, array[x.id], array[x.charged], array[x.at], v_before);
    delete from reservation r where r.request_id = x.id;
    return null;
  end if;
  perform 1 from budget g where g.id = any (v_budgets) for update nowait;
  perform 1 from lease l where l.budget_id = any (v_budgets) and l.instance_id = p_instance and l.epoch = p_epoch for update nowait;
  perform 1 from usage_event e where e.request_id = x.id for update nowait;
  perform 1 from reservation r where r.request_id = x.id for update nowait;
  -- An operator had declared this request lost (lease_close), but it has a settlement after all: its record is
  -- replaced.
  if exists (select 1 from usage_event e where e.request_id = x.id and e.rate_card_id = '' and e.charged_nano_usd = 0) then
    perform usage_take_back(x.id);
    delete from usage_event e where e.request_id = x.id and e.rate_card_id = '' and e.charged_nano_usd = 0;
  end if;
  if exists (select 1 from usage_event e where e.request_id = x.id) then
    return null;
  end if;
  -- If the epoch is not being closed, its instance may still spend the credit left in its leases.
  v_closing := exists (select 1 from instance_now i where i.id = p_instance and i.epoch = p_epoch and i.state = 'closing');
  select case when count(*) = cardinality(v_budgets)
      then least(x.charged, min(case when g.limit_nano_usd is null then x.charged else greatest(0, g.limit_nano_usd - g.drawn_nano_usd)
        + case when v_closing and l.state = 'open' then l.granted_nano_usd - l.returned_nano_usd - l.settled_nano_usd else 0 end end))
      else 0 end
    into v_fit
    from budget g left join lease l on l.budget_id = g.id and l.instance_id = p_instance and l.epoch = p_epoch
    where g.id = any (v_budgets);
  insert into usage_event (request_id, account_id, key_id, instance_id, epoch, model, rate_card_id, endpoint, streamed,
      reserved_nano_usd, charged_nano_usd, written_off_nano_usd, basis, ending, status, prompt_tokens, cached_tokens,
      completion_tokens, reasoning_tokens, units, replica, batch_id, budgets, project_id, admitted_at, first_token_ms, duration_ms)
    values (x.id, x.account, x.key, p_instance, p_epoch, x.model, x.card, x.endpoint, x.streamed,
      x.reserved, v_fit, x.off + x.charged - v_fit, x.basis, x.ending, x.status, x."promptTokens", x."cachedTokens",
      x."completionTokens", x."reasoningTokens", x.units, x.replica, x.batch, x.budgets, budgets_project(x.budgets), v_admitted, x.first, x.ms);
  -- Creates the epoch's row again if it was deleted, so that the lease is later sealed and deleted with it.
  insert into instance_beat (id, epoch, beat, state, ttl_ms, lease_until, ended_at)
    select p_instance, p_epoch, 1, 'left', 0, now(), now()
      where not exists (select 1 from instance_beat b where b.id = p_instance and b.epoch = p_epoch) on conflict do nothing;
  -- Grants the lease what it lacks and spends all of that at once, so that `settled` stays the sum of its requests.
  for part in select g.id, case when v_closing and l.state = 'open'
        then least(v_fit, l.granted_nano_usd - l.returned_nano_usd - l.settled_nano_usd) else 0 end as own
      from budget g left join lease l on l.budget_id = g.id and l.instance_id = p_instance and l.epoch = p_epoch
      where g.id = any (v_budgets) loop
    insert into lease as l (budget_id, instance_id, epoch, granted_nano_usd, settled_nano_usd, state)
      values (part.id, p_instance, p_epoch, v_fit, v_fit, 'closed')
      on conflict (budget_id, instance_id, epoch) do update
        set granted_nano_usd = l.granted_nano_usd + v_fit - part.own, settled_nano_usd = l.settled_nano_usd + v_fit,
          state = case when l.granted_nano_usd - l.returned_nano_usd - l.settled_nano_usd = part.own then 'closed' else l.state end;
    if v_fit > part.own then
      insert into lease_op (id, budget_id, instance_id, epoch, kind, amount_nano_usd)
        values (gen_random_uuid(), part.id, p_instance, p_epoch, 'grant', v_fit - part.own);
    end if;
    update budget g set drawn_nano_usd = g.drawn_nano_usd + v_fit - part.own,
      written_off_nano_usd = g.written_off_nano_usd + case when g.id = x.account then x.charged - v_fit else 0 end
      where g.id = part.id;
  end loop;
  delete from reservation r where r.request_id = x.id;
  return x.off + x.charged - v_fit;
end $$;

-- Changes an account's credit. p_forced: takes more than is available, as for a dispute; the next top-up covers the
-- shortage first. Returns the control entry's number; null if the reference was booked before. TG003: too little
-- credit. TG004: unspent credit would exceed the largest exact number; total spending over the years has no limit.
create or replace function ledger_book(p_id text, p_account text, p_kind text, p_amount bigint, p_source_ref text, p_actor text, p_note text, p_forced boolean)
returns bigint
language plpgsql as $$
declare
  b record;
begin
  select g.limit_nano_usd as cap, g.drawn_nano_usd as drawn into b from budget g where g.id = p_account and g.kind = 'account' for update;
  if not found then
    raise exception 'There is no account {id}.' using errcode = 'TG002', detail = json_build_object('id', p_account);
  end if;
  if exists (select 1 from ledger_entry e where e.source_ref = p_source_ref) then
    return null;
  end if;
  if p_amount < 0 and b.cap + p_amount < b.drawn and not p_forced then
    raise exception 'the available credit does not cover it' using errcode = 'TG003';
  end if;
  if p_amount > 0 and b.cap - b.drawn + coalesce((
      select sum(l.granted_nano_usd - l.returned_nano_usd - l.settled_nano_usd) from lease l where l.budget_id = p_account and l.state = 'open'
    ), 0) > 9007199254740991 - p_amount then
    raise exception 'The credit of the account would exceed the maximum.' using errcode = 'TG004';
  end if;
  insert into ledger_entry (id, account_id, kind, amount_nano_usd, source_ref, actor, note)
    values (p_id, p_account, p_kind, p_amount, p_source_ref, p_actor, p_note) on conflict (source_ref) do nothing;
  if not found then
    return null; -- a concurrent call has used the reference for another account
  end if;
  update budget g set limit_nano_usd = g.limit_nano_usd + p_amount where g.id = p_account;
  return control_append('budget', p_account, jsonb_build_object('lowered', p_amount < 0));
end $$;
