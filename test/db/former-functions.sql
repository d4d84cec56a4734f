-- The SQL functions of the version before this one, as it lays them down beside the tables at each start. Made from its
-- commit (test/versions/former-version.ts); test/db/former-functions.test.ts holds it against the history where there is one.
-- Appends to the control log and announces it. The lock on the clock's only row is held until commit,
-- so the order of sequence numbers is the order of commits and a reader never skips a late one.
create or replace function control_append(p_kind text, p_subject text, p_payload jsonb) returns bigint
language plpgsql as $$
declare
  v_seq bigint;
begin
  update control_clock set seq = seq + 1 where id = 1 returning seq into v_seq;
  insert into control_log (seq, kind, subject, payload) values (v_seq, p_kind, p_subject, p_payload);
  perform pg_notify('tollgate_control', v_seq::text);
  return v_seq;
end $$;

-- Takes the next epoch of an identity, in state joining.
create or replace function instance_join(p_id text, p_ttl_ms integer) returns integer
language plpgsql as $$
declare
  v_epoch integer;
begin
  perform pg_advisory_xact_lock(hashtextextended('instance ' || p_id, 0));
  -- An epoch that died while it joined has no leases and no journal to replay.
  update instance set state = 'left', ended_at = clock_timestamp()
    where id = p_id and state = 'joining' and lease_until < clock_timestamp();
  select coalesce(max(epoch), 0) + 1 into v_epoch from instance where id = p_id;
  insert into instance (id, epoch, state, lease_until)
    values (p_id, v_epoch, 'joining', clock_timestamp() + make_interval(secs => p_ttl_ms / 1000.0));
  return v_epoch;
end $$;

-- joining -> live, only if nothing was appended to the control log after p_applied. The share lock on the clock keeps
-- a change from being committed between this check and the new state. Returns the clock's sequence number; the
-- instance is live if that equals p_applied.
create or replace function instance_go_live(p_id text, p_epoch integer, p_applied bigint, p_ttl_ms integer) returns bigint
language plpgsql as $$
declare
  v_seq bigint;
begin
  select seq into v_seq from control_clock where id = 1 for share;
  if v_seq = p_applied then
    update instance set state = 'live', applied_seq = p_applied,
      lease_until = clock_timestamp() + make_interval(secs => p_ttl_ms / 1000.0)
      where id = p_id and epoch = p_epoch and state in ('joining', 'live');
    if not found then
      return null;
    end if;
  end if;
  return v_seq;
end $$;

-- Renews the lease of a live instance. Null if it is not live any more: somebody fenced it off.
create or replace function instance_heartbeat(p_id text, p_epoch integer, p_applied bigint, p_ttl_ms integer) returns bigint
language plpgsql as $$
declare
  v_seq bigint;
begin
  update instance set applied_seq = greatest(applied_seq, p_applied),
    lease_until = clock_timestamp() + make_interval(secs => p_ttl_ms / 1000.0)
    where id = p_id and epoch = p_epoch and state = 'live';
  if not found then
    return null;
  end if;
  select seq into v_seq from control_clock where id = 1;
  return v_seq;
end $$;

-- Says which live instances have not applied p_seq yet, after fencing off those whose lease is over. The fencing is an
-- UPDATE, not a read: it waits for a renewal that is being committed and looks again at what that left. The rows are
-- locked in their order, so that two of these do not wait for each other.
create or replace function instance_pending(p_seq bigint, p_grace_ms integer) returns table (id text, epoch integer, lease_until timestamptz)
language plpgsql as $$
begin
  with expired as materialized (
    select i.id, i.epoch from instance i
      where i.state = 'live' and i.applied_seq < p_seq
        and i.lease_until < clock_timestamp() - make_interval(secs => p_grace_ms / 1000.0)
      order by i.id, i.epoch for update
  )
  update instance i set state = 'dead' from expired x where i.id = x.id and i.epoch = x.epoch;
  return query select i.id, i.epoch, i.lease_until from instance i where i.state = 'live' and i.applied_seq < p_seq;
end $$;
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
      completion_tokens, reasoning_tokens, units, replica, admitted_at, first_token_ms, duration_ms)
    select x.id, x.account, x.key, p_instance, p_epoch, x.model, x.card, x.endpoint, x.streamed,
      x.reserved, x.charged, x.off, x.basis, x.ending, x.status, x.prompt, x.cached,
      x.completion, x.reasoning, x.units, x.replica, to_timestamp(x.at / 1000.0), x.first, x.ms
    from json_to_recordset(p_settled) as x(id uuid, account text, key text, model text, card text, endpoint text, streamed boolean,
      reserved bigint, charged bigint, "off" bigint, basis text, ending text, status integer, prompt integer, cached integer,
      completion integer, reasoning integer, units integer, replica text, at double precision, first real, ms real)
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
    completion integer, reasoning integer, units integer, replica text, at double precision, first real, ms real);
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
      completion_tokens, reasoning_tokens, units, replica, admitted_at, first_token_ms, duration_ms)
    values (x.id, x.account, x.key, p_instance, p_epoch, x.model, x.card, x.endpoint, x.streamed,
      x.reserved, v_fit, x.off + x.charged - v_fit, x.basis, x.ending, x.status, x.prompt, x.cached,
      x.completion, x.reasoning, x.units, x.replica, to_timestamp(x.at / 1000.0), x.first, x.ms);
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
-- Keys and accounts. What running instances must hear of is appended to the control log in the same statement.
-- Locks are taken in one order everywhere: top-up, account, key, budget, control clock.

-- A key as instances hold it in memory. Times in milliseconds since 1970; null models: all.
create or replace function key_fields(k api_key) returns jsonb
language sql stable as $$
  select jsonb_build_object('id', k.id, 'accountId', k.account_id, 'name', k.name, 'state', k.state,
    'capNanoUsd', k.cap_nano_usd, 'models', case when jsonb_array_length(k.models) = 0 then null else k.models end,
    'expiresAtMs', (extract(epoch from k.expires_at) * 1000)::bigint,
    'requestsPerMinute', k.requests_per_minute, 'concurrencyMax', k.concurrency_max)
$$;

-- An account as instances hold it in memory.
create or replace function account_fields(a account) returns jsonb
language sql stable as $$
  select jsonb_build_object('state', a.state, 'toppedUp', a.topped_up, 'signedIn', a.signed_in_at is not null)
$$;

-- Changes the fields that p_patch names: name, capNanoUsd, models, expiresAtMs, requestsPerMinute, concurrencyMax.
-- p_account: only if the key is that account's; null: any. Returns the sequence number of the last control entry.
-- TG002: no such key. TG004: it was revoked.
create or replace function key_update(p_id text, p_account text, p_patch jsonb) returns bigint
language plpgsql as $$
declare
  k api_key;
  v_before bigint;
  v_seq bigint;
begin
  select * into k from api_key where id = p_id and (p_account is null or account_id = p_account) for update;
  if not found then
    raise exception 'There is no key %.', p_id using errcode = 'TG002';
  end if;
  if k.state = 'revoked' then
    raise exception 'The key was revoked: it cannot be changed.' using errcode = 'TG004';
  end if;
  if p_patch ? 'name' then k.name := p_patch ->> 'name'; end if;
  if p_patch ? 'capNanoUsd' then k.cap_nano_usd := (p_patch ->> 'capNanoUsd')::bigint; end if;
  if p_patch ? 'models' then k.models := p_patch -> 'models'; end if;
  if p_patch ? 'expiresAtMs' then k.expires_at := to_timestamp((p_patch ->> 'expiresAtMs')::double precision / 1000.0); end if;
  if p_patch ? 'requestsPerMinute' then k.requests_per_minute := (p_patch ->> 'requestsPerMinute')::integer; end if;
  if p_patch ? 'concurrencyMax' then k.concurrency_max := (p_patch ->> 'concurrencyMax')::integer; end if;
  update api_key set name = k.name, cap_nano_usd = k.cap_nano_usd, models = k.models, expires_at = k.expires_at,
    requests_per_minute = k.requests_per_minute, concurrency_max = k.concurrency_max where id = p_id;
  select limit_nano_usd into v_before from budget where id = p_id for update;
  update budget set limit_nano_usd = k.cap_nano_usd where id = p_id;
  v_seq := control_append('key', p_id, key_fields(k));
  if v_before is distinct from k.cap_nano_usd then
    v_seq := control_append('budget', p_id, jsonb_build_object('lowered',
      k.cap_nano_usd is not null and (v_before is null or k.cap_nano_usd < v_before)));
  end if;
  return v_seq;
end $$;

-- Makes a replacement with the same settings; the old key ends after p_grace_ms, at once if that is 0.
-- Returns the sequence number of the last control entry. TG002: no such key. TG004: it is not in use any more.
create or replace function key_rotate(p_id text, p_account text, p_new_id text, p_digest text, p_prefix text, p_last_four text, p_grace_ms double precision)
returns bigint
language plpgsql as $$
declare
  k api_key;
  n api_key;
  v_end timestamptz := clock_timestamp() + make_interval(secs => p_grace_ms / 1000.0);
begin
  select * into k from api_key where id = p_id and (p_account is null or account_id = p_account) for update;
  if not found then
    raise exception 'There is no key %.', p_id using errcode = 'TG002';
  end if;
  if k.state = 'revoked' or k.expires_at <= clock_timestamp() then
    raise exception 'The key is revoked or expired: create a new one.' using errcode = 'TG004';
  end if;
  if k.replaced_by is not null then
    raise exception 'The key was replaced by % already.', k.replaced_by using errcode = 'TG004';
  end if;
  insert into api_key (id, account_id, name, digest, prefix, last_four, cap_nano_usd, models, expires_at, requests_per_minute, concurrency_max)
    values (p_new_id, k.account_id, k.name, p_digest, p_prefix, p_last_four, k.cap_nano_usd, k.models, k.expires_at, k.requests_per_minute, k.concurrency_max)
    returning * into n;
  insert into budget (id, kind, account_id, limit_nano_usd) values (p_new_id, 'key', k.account_id, k.cap_nano_usd);
  update api_key set replaced_by = p_new_id,
      state = case when p_grace_ms <= 0 then 'revoked' else state end,
      revoked_at = case when p_grace_ms <= 0 then clock_timestamp() else revoked_at end,
      expires_at = case when p_grace_ms <= 0 then expires_at else least(expires_at, v_end) end
    where id = p_id returning * into k;
  perform control_append('key', p_new_id, key_fields(n));
  return control_append('key', p_id, key_fields(k));
end $$;
-- Sums of usage by the hour, from which every page answers.

create or replace function usage_class(p_ending text) returns text
language sql immutable as $$
  select case p_ending when 'finished' then 'ok' when 'client_left' then 'left' else 'failed' end
$$;

-- Adds the usage rows that were committed since the last call to the sums, each row once. Returns how many there were;
-- null if another instance is at it.
--
-- A moment in settled_at does not tell what was seen before: a row gets it when its transaction begins and appears when
-- that commits. So the number of the transaction counts: whatever is below the snapshot's xmin has ended and is visible
-- in this very snapshot. Rows older than a minute are all there by then, since every writer is one statement that the
-- server ends after half of that.
create or replace function usage_fold() returns bigint
language plpgsql as $$
declare
  c usage_cursor;
  v_floor timestamptz;
  v_rows bigint;
begin
  insert into usage_cursor (id) values (1) on conflict do nothing;
  select * into c from usage_cursor where id = 1 for update skip locked;
  if not found then
    return null;
  end if;
  if c.horizon is null or c.horizon > pg_current_xact_id()::text::bigint then
    -- The first time, or a restored database that counts its transactions anew.
    delete from usage_hour;
    c.horizon := 0;
    v_floor := '-infinity';
  else
    v_floor := c.folded_at - interval '1 minute';
  end if;
  with seen as materialized (
    select s.horizon, s.horizon % 4294967296 as low, clock_timestamp() as at from (
      select pg_snapshot_xmin(pg_current_snapshot())::text::bigint as horizon) s
  ), fresh as materialized (
    select e.account_id, e.key_id, e.model, e.ending, e.admitted_at, e.prompt_tokens, e.cached_tokens, e.completion_tokens,
      e.reasoning_tokens, e.charged_nano_usd, e.written_off_nano_usd, e.duration_ms, e.first_token_ms, e.settled_at, s.horizon, s.at,
      -- The row's transaction with all its digits: the one near the horizon that ends in these 32 bits.
      s.horizon + ((e.xmin::text::bigint - s.low + 6442450944) % 4294967296) - 2147483648 as xid
    from usage_event e cross join seen s where e.settled_at >= v_floor
  ), added as (
    insert into usage_hour as h (account_id, hour, key_id, model, class, requests, prompt_tokens, cached_tokens, completion_tokens,
      reasoning_tokens, charged_nano_usd, written_off_nano_usd, duration_ms, first_token_ms, first_tokens)
    select f.account_id, date_trunc('hour', f.admitted_at, 'UTC'), f.key_id, f.model, usage_class(f.ending), count(*),
      sum(f.prompt_tokens), sum(f.cached_tokens), sum(f.completion_tokens), sum(f.reasoning_tokens), sum(f.charged_nano_usd),
      sum(f.written_off_nano_usd), sum(f.duration_ms::double precision), coalesce(sum(f.first_token_ms::double precision), 0), count(f.first_token_ms)
    from fresh f
    where (f.settled_at < f.at - interval '1 minute' or f.xid < f.horizon) and (v_floor = '-infinity' or f.xid >= c.horizon)
    group by 1, 2, 3, 4, 5
    on conflict (account_id, hour, key_id, model, class) do update set
      requests = h.requests + excluded.requests, prompt_tokens = h.prompt_tokens + excluded.prompt_tokens,
      cached_tokens = h.cached_tokens + excluded.cached_tokens, completion_tokens = h.completion_tokens + excluded.completion_tokens,
      reasoning_tokens = h.reasoning_tokens + excluded.reasoning_tokens, charged_nano_usd = h.charged_nano_usd + excluded.charged_nano_usd,
      written_off_nano_usd = h.written_off_nano_usd + excluded.written_off_nano_usd, duration_ms = h.duration_ms + excluded.duration_ms,
      first_token_ms = h.first_token_ms + excluded.first_token_ms, first_tokens = h.first_tokens + excluded.first_tokens
  ), used as (
    update api_key k set last_used_at = x.at
    from (select f.key_id, max(f.admitted_at) as at from fresh f group by 1) x
    where k.id = x.key_id and (k.last_used_at is null or k.last_used_at < x.at)
  ), moved as (
    update usage_cursor u set horizon = s.horizon, folded_at = s.at from seen s where u.id = 1
  )
  select count(*) into v_rows from fresh f
    where (f.settled_at < f.at - interval '1 minute' or f.xid < f.horizon) and (v_floor = '-infinity' or f.xid >= c.horizon);
  return v_rows;
end $$;
-- Confirms a pending top-up: state, credit and the account's right to use the service change together or not at all.
-- Confirming it again changes nothing and returns null; else the sequence number of the last control entry.
-- TG002: no such top-up. TG004: it was rejected, refunded or disputed, or the account's credit would pass what can be counted.
create or replace function topup_confirm(p_id text, p_actor text, p_entry_id text) returns bigint
language plpgsql as $$
declare
  t top_up;
  a account;
  v_limit bigint;
begin
  select * into t from top_up where id = p_id for update;
  if not found then
    raise exception 'There is no top-up %.', p_id using errcode = 'TG002';
  end if;
  if t.state = 'confirmed' then
    return null;
  end if;
  if t.state <> 'pending' then
    raise exception 'The top-up is %: it cannot be confirmed.', t.state using errcode = 'TG004';
  end if;
  update top_up set state = 'confirmed', decided_at = clock_timestamp(), decided_by = p_actor where id = p_id;
  update account set topped_up = topped_up or t.amount_nano_usd >= 100000000000 where id = t.account_id returning * into a;
  select limit_nano_usd into v_limit from budget where id = t.account_id for update;
  if v_limit > 9007199254740991 - t.amount_nano_usd then
    raise exception 'The account would hold more credit than can be counted.' using errcode = 'TG004';
  end if;
  if ledger_book(p_entry_id, t.account_id, 'top_up', t.amount_nano_usd, 'topup:' || t.id, p_actor, t.reference, false) is null then
    raise exception 'top-up % is pending and yet booked', p_id;
  end if;
  return control_append('account', t.account_id, account_fields(a));
end $$;
