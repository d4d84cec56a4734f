-- The write-behind protocol of credit. Each function is called as one autocommit statement and may be repeated.
-- enable_seqscan = off: plans are kept from the first calls, when the tables are empty and a scan looks cheap.
-- Locks are taken in one order everywhere: instance, then budgets by id, then leases by budget id.

-- Grants slices of budgets to a live instance. p_requests: [{op, budget, want, min}], at most one a budget.
-- A grant is as much of `want` as is fair (half of what is available, divided by the live instances), at least `min`
-- if that much is available, else nothing. Returns for each request what was granted, what is available now (null:
-- no limit), and whether a live instance other than this one holds some of the budget. An unknown budget has nothing.
-- `again`: an earlier attempt may still arrive; a refusal is then written down, so that it is not granted behind us.
create or replace function ledger_grant(p_instance text, p_epoch integer, p_requests json)
returns table (op uuid, amount bigint, available bigint, elsewhere boolean, live integer)
language plpgsql set enable_seqscan = off as $$
declare
  r record;
  b record;
  v_live integer;
  v_amount bigint;
begin
  perform 1 from instance i where i.id = p_instance and i.epoch = p_epoch and i.state = 'live' for share;
  if not found then
    raise exception 'instance is not live' using errcode = 'TG001';
  end if;
  select count(*)::integer into v_live from instance i where i.state = 'live';
  for r in select x.op, x.budget, x.want, x.min, x.again from json_to_recordset(p_requests) as x(op uuid, budget text, want bigint, min bigint, again boolean) order by x.budget loop
    select g.limit_nano_usd as cap, g.drawn_nano_usd as drawn into b from budget g where g.id = r.budget for update;
    if not found then
      op := r.op; amount := 0; available := 0; elsewhere := false; live := v_live;
      return next;
      continue;
    end if;
    select o.amount_nano_usd into v_amount from lease_op o where o.id = r.op;
    if not found then
      if b.cap is null then
        v_amount := r.want;
      else
        v_amount := least(r.want, greatest(r.min, (b.cap - b.drawn) / (2 * v_live)));
        if v_amount > b.cap - b.drawn or v_amount < r.min then
          v_amount := 0;
        end if;
      end if;
      if v_amount > 0 or r.again then
        insert into lease_op (id, budget_id, instance_id, epoch, kind, amount_nano_usd)
          values (r.op, r.budget, p_instance, p_epoch, 'grant', v_amount);
      end if;
      if v_amount > 0 then
        insert into lease as l (budget_id, instance_id, epoch, granted_nano_usd) values (r.budget, p_instance, p_epoch, v_amount)
          on conflict (budget_id, instance_id, epoch) do update set granted_nano_usd = l.granted_nano_usd + excluded.granted_nano_usd;
        update budget g set drawn_nano_usd = g.drawn_nano_usd + v_amount where g.id = r.budget;
        b.drawn := b.drawn + v_amount;
      end if;
    end if;
    op := r.op;
    amount := v_amount;
    available := case when b.cap is null then null else greatest(0, b.cap - b.drawn) end;
    elsewhere := v_live > 1 and exists (
      select 1 from lease l join instance i on i.id = l.instance_id and i.epoch = l.epoch and i.state = 'live'
      where l.budget_id = r.budget and l.state = 'open' and (l.instance_id, l.epoch) <> (p_instance, p_epoch)
        and l.granted_nano_usd - l.returned_nano_usd - l.settled_nano_usd > 0);
    live := v_live;
    return next;
  end loop;
end $$;

-- Gives slices back. p_requests: [{op, budget, amount}]. The instance has taken the amounts from its memory before.
create or replace function ledger_return(p_instance text, p_epoch integer, p_requests json) returns void
language plpgsql set enable_seqscan = off as $$
declare
  r record;
begin
  perform 1 from instance i where i.id = p_instance and i.epoch = p_epoch and i.state <> 'left' for share;
  if not found then
    return; -- its leases were closed: what it gives back here was counted there
  end if;
  for r in select x.op, x.budget, x.amount from json_to_recordset(p_requests) as x(op uuid, budget text, amount bigint) order by x.budget loop
    perform 1 from budget g where g.id = r.budget for update;
    insert into lease_op (id, budget_id, instance_id, epoch, kind, amount_nano_usd)
      values (r.op, r.budget, p_instance, p_epoch, 'return', r.amount) on conflict do nothing;
    if found then
      update lease l set returned_nano_usd = l.returned_nano_usd + r.amount
        where l.budget_id = r.budget and l.instance_id = p_instance and l.epoch = p_epoch and l.state = 'open';
      if not found then
        raise exception 'no open lease of % to return to', r.budget;
      end if;
      update budget g set drawn_nano_usd = g.drawn_nano_usd - r.amount where g.id = r.budget;
    end if;
  end loop;
end $$;

-- Records settled requests and those still open. Only new settlements count. Returns 'late', and records nothing,
-- if the instance's leases were closed: then each settlement goes through ledger_settle_late.
create or replace function ledger_flush(p_instance text, p_epoch integer, p_settled json, p_open json) returns text
language plpgsql set enable_seqscan = off as $$
begin
  -- A repeated flush can meet its first attempt, which may still run: one after the other, so that the second one sees
  -- what the first one settled and does not show it as running.
  perform pg_advisory_xact_lock(hashtextextended(p_instance || ' ' || p_epoch, 1));
  perform 1 from instance i where i.id = p_instance and i.epoch = p_epoch and i.state <> 'left' for share;
  if not found then
    return 'late';
  end if;
  with s as (
    insert into usage_event (request_id, account_id, key_id, instance_id, epoch, model, rate_card_id, endpoint, streamed,
      reserved_nano_usd, charged_nano_usd, written_off_nano_usd, basis, ending, status, prompt_tokens, cached_tokens,
      completion_tokens, reasoning_tokens, units, replica, batch_id, admitted_at, first_token_ms, duration_ms)
    select x.id, x.account, x.key, p_instance, p_epoch, x.model, x.card, x.endpoint, x.streamed,
      x.reserved, x.charged, x.off, x.basis, x.ending, x.status, x.prompt, x.cached,
      x.completion, x.reasoning, x.units, x.replica, x.batch, to_timestamp(x.at / 1000.0), x.first, x.ms
    from json_to_recordset(p_settled) as x(id uuid, account text, key text, model text, card text, endpoint text, streamed boolean,
      reserved bigint, charged bigint, "off" bigint, basis text, ending text, status integer, prompt integer, cached integer,
      completion integer, reasoning integer, units integer, replica text, batch text, at double precision, first real, ms real)
    on conflict (request_id) do nothing
    returning account_id, key_id, charged_nano_usd
  ), sums as (
    select b.budget_id, sum(b.nano)::bigint as nano from (
      select account_id as budget_id, charged_nano_usd as nano from s union all select key_id, charged_nano_usd from s
    ) b where b.nano > 0 group by 1
  ), locked as materialized (
    select l.budget_id from lease l where l.instance_id = p_instance and l.epoch = p_epoch
      and l.budget_id in (select sums.budget_id from sums) order by l.budget_id for update
  )
  update lease l set settled_nano_usd = l.settled_nano_usd + sums.nano
    from sums join locked on locked.budget_id = sums.budget_id
    where l.budget_id = locked.budget_id and l.instance_id = p_instance and l.epoch = p_epoch;
  -- Most requests are over before anybody wrote them down as running; then there is no need to read the batch again.
  if exists (select 1 from reservation) then
    delete from reservation r using json_to_recordset(p_settled) as x(id uuid) where r.request_id = x.id;
  end if;
  insert into reservation (request_id, account_id, key_id, instance_id, epoch, model, reserved_nano_usd, admitted_at)
    select x.id, x.account, x.key, p_instance, p_epoch, x.model, x.reserved, to_timestamp(x.at / 1000.0)
    from json_to_recordset(p_open) as x(id uuid, account text, key text, model text, reserved bigint, at double precision)
    where not exists (select 1 from usage_event e where e.request_id = x.id)
    on conflict do nothing;
  return 'ok';
end $$;

-- Records one settlement of an instance whose leases were closed. It draws on what is available now; what does not
-- fit is the operator's write-off, so no budget passes its limit and no usage is rejected.
create or replace function ledger_settle_late(p_instance text, p_epoch integer, p_event json) returns void
language plpgsql set enable_seqscan = off as $$
declare
  x record;
  v_fit bigint;
begin
  select * into x from json_to_record(p_event) as x(id uuid, account text, key text, model text, card text, endpoint text, streamed boolean,
    reserved bigint, charged bigint, "off" bigint, basis text, ending text, status integer, prompt integer, cached integer,
    completion integer, reasoning integer, units integer, replica text, batch text, at double precision, first real, ms real);
  perform 1 from instance i where i.id = p_instance and i.epoch = p_epoch for share;
  perform 1 from budget g where g.id in (x.account, x.key) order by g.id for update;
  -- An operator attested that nothing would be heard of this request any more (ledger_close). That was wrong.
  delete from usage_event e where e.request_id = x.id and e.rate_card_id = '' and e.charged_nano_usd = 0;
  if exists (select 1 from usage_event e where e.request_id = x.id) then
    return;
  end if;
  select least(x.charged, min(case when g.limit_nano_usd is null then x.charged else greatest(0, g.limit_nano_usd - g.drawn_nano_usd) end))
    into v_fit from budget g where g.id in (x.account, x.key);
  insert into usage_event (request_id, account_id, key_id, instance_id, epoch, model, rate_card_id, endpoint, streamed,
      reserved_nano_usd, charged_nano_usd, written_off_nano_usd, basis, ending, status, prompt_tokens, cached_tokens,
      completion_tokens, reasoning_tokens, units, replica, batch_id, admitted_at, first_token_ms, duration_ms)
    values (x.id, x.account, x.key, p_instance, p_epoch, x.model, x.card, x.endpoint, x.streamed,
      x.reserved, v_fit, x.off + x.charged - v_fit, x.basis, x.ending, x.status, x.prompt, x.cached,
      x.completion, x.reasoning, x.units, x.replica, x.batch, to_timestamp(x.at / 1000.0), x.first, x.ms);
  -- The closed lease takes the amount in and spends it at once, so that settled stays the sum of its requests.
  insert into lease as l (budget_id, instance_id, epoch, granted_nano_usd, settled_nano_usd, state)
    select g.id, p_instance, p_epoch, v_fit, v_fit, 'closed' from budget g where g.id in (x.account, x.key)
    on conflict (budget_id, instance_id, epoch) do update
      set granted_nano_usd = l.granted_nano_usd + v_fit, settled_nano_usd = l.settled_nano_usd + v_fit;
  if v_fit > 0 then
    insert into lease_op (id, budget_id, instance_id, epoch, kind, amount_nano_usd)
      select gen_random_uuid(), g.id, p_instance, p_epoch, 'grant', v_fit from budget g where g.id in (x.account, x.key);
  end if;
  update budget g set drawn_nano_usd = g.drawn_nano_usd + v_fit,
    written_off_nano_usd = g.written_off_nano_usd + case when g.id = x.account then x.charged - v_fit else 0 end
    where g.id in (x.account, x.key);
  delete from reservation r where r.request_id = x.id;
end $$;

-- Closes all leases of an instance that will not settle any more: what they did not spend is available again.
-- p_journal_lost: the operator attests that its journal is gone; requests known only as reservations are recorded
-- as crashed, at no charge and without a rate card, by which a late settlement knows them. Returns the number of
-- leases closed now.
create or replace function ledger_close(p_instance text, p_epoch integer, p_journal_lost boolean) returns integer
language plpgsql set enable_seqscan = off as $$
declare
  v_closed integer := 0;
  r record;
begin
  perform 1 from instance i where i.id = p_instance and i.epoch = p_epoch and i.state <> 'left' for update;
  if not found then
    return 0;
  end if;
  perform 1 from budget g where g.id in (
      select l.budget_id from lease l where l.instance_id = p_instance and l.epoch = p_epoch and l.state = 'open')
    order by g.id for update;
  for r in select l.budget_id, l.granted_nano_usd - l.returned_nano_usd - l.settled_nano_usd as rest from lease l
      where l.instance_id = p_instance and l.epoch = p_epoch and l.state = 'open' order by l.budget_id for update loop
    update budget g set drawn_nano_usd = g.drawn_nano_usd - r.rest where g.id = r.budget_id;
    update lease l set state = 'closed' where l.budget_id = r.budget_id and l.instance_id = p_instance and l.epoch = p_epoch;
    v_closed := v_closed + 1;
  end loop;
  if p_journal_lost then
    insert into usage_event (request_id, account_id, key_id, instance_id, epoch, model, rate_card_id, endpoint, streamed,
        reserved_nano_usd, charged_nano_usd, basis, ending, status, admitted_at)
      select v.request_id, v.account_id, v.key_id, p_instance, p_epoch, v.model, '', 'chat', false,
        v.reserved_nano_usd, 0, 'recovered', 'crashed', 500, v.admitted_at
      from reservation v where v.instance_id = p_instance and v.epoch = p_epoch
      on conflict do nothing;
  end if;
  delete from reservation v where v.instance_id = p_instance and v.epoch = p_epoch;
  update instance i set state = 'left', ended_at = clock_timestamp() where i.id = p_instance and i.epoch = p_epoch;
  return v_closed;
end $$;

-- Moves an account's credit. p_forced: a dispute takes more than is available; the next top-up pays for the rest first.
-- Returns the sequence number of the control log, null if the reference was booked before. Fault TG003: not covered.
create or replace function ledger_book(p_id text, p_account text, p_kind text, p_amount bigint, p_source_ref text, p_actor text, p_note text, p_forced boolean)
returns bigint
language plpgsql as $$
declare
  b record;
begin
  select g.limit_nano_usd as cap, g.drawn_nano_usd as drawn into b from budget g where g.id = p_account and g.kind = 'account' for update;
  if not found then
    raise exception 'no account %', p_account using errcode = 'TG002';
  end if;
  if exists (select 1 from ledger_entry e where e.source_ref = p_source_ref) then
    return null;
  end if;
  if p_amount < 0 and b.cap + p_amount < b.drawn and not p_forced then
    raise exception 'the available credit does not cover it' using errcode = 'TG003';
  end if;
  insert into ledger_entry (id, account_id, kind, amount_nano_usd, source_ref, actor, note)
    values (p_id, p_account, p_kind, p_amount, p_source_ref, p_actor, p_note) on conflict (source_ref) do nothing;
  if not found then
    return null; -- booked for another account at the same moment
  end if;
  update budget g set limit_nano_usd = g.limit_nano_usd + p_amount where g.id = p_account;
  return control_append('budget', p_account, jsonb_build_object('lowered', p_amount < 0));
end $$;
