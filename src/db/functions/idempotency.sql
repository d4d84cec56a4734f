-- Idempotency keys of all instances. Lock order: the requested claim, the account's space, older claims.

-- Total charge of a claim's attempts; null if none was admitted.
create or replace function idempotency_charged(p_request uuid) returns bigint
language sql stable set enable_seqscan = off as $$
  select sum(e.charged_nano_usd)::bigint
    from usage_event e where e.request_id between p_request and (left(p_request::text, 34) || 'ff')::uuid
$$;

-- Claims an idempotency key for a request, or returns the state of the existing claim:
-- - new: the caller may proceed.
-- - running: another request uses the key.
-- - mismatch: the key belongs to a different request.
-- - answered: with the encrypted answer.
-- - unkept, lost: the request was charged, and its answer was not kept, or was lost with its instance.
-- If the claim's instance has left, the ledger decides: a request without a record was never sent, so the caller takes
-- over its claim. A claim expires by both the database's clock and the caller's (p_now_ms), and not while its request
-- may run on a live instance. Repeatable.
create or replace function idempotency_claim(p_id text, p_account text, p_proof text, p_request uuid, p_instance text, p_epoch integer, p_keep_s integer,
  p_now_ms double precision)
returns table (outcome text, request uuid, charged bigint, sealed bytea)
language plpgsql set enable_seqscan = off as $$
declare
  c idempotency_claim;
  v_state text;
  v_now timestamptz := least(clock_timestamp(), to_timestamp(p_now_ms / 1000.0));
  v_until timestamptz := greatest(clock_timestamp(), to_timestamp(p_now_ms / 1000.0)) + make_interval(secs => p_keep_s);
begin
  insert into idempotency_claim (id, account_id, proof, request_id, instance_id, epoch, expires_at)
    values (p_id, p_account, p_proof, p_request, p_instance, p_epoch, v_until)
    on conflict do nothing;
  if found then
    outcome := 'new';
    return next;
    return;
  end if;
  select * into c from idempotency_claim k where k.id = p_id for update;
  if not found then
    outcome := 'running'; -- a concurrent call released the claim, so the caller sends the request again
    return next;
    return;
  end if;
  request := c.request_id;
  if c.state = 'running' then
    select n.state into v_state from instance_now n where n.id = c.instance_id and n.epoch = c.epoch;
  end if;
  if c.request_id <> p_request and (c.expires_at > v_now or v_state in ('joining', 'live', 'silent')) then
    if c.proof <> p_proof then
      outcome := 'mismatch';
      return next;
      return;
    end if;
    if c.state <> 'running' then
      outcome := c.state;
      sealed := c.answer;
      charged := idempotency_charged(c.request_id);
      return next;
      return;
    end if;
    if v_state <> 'left' then
      outcome := 'running';
      return next;
      return;
    end if;
    charged := idempotency_charged(c.request_id);
    if charged is not null then
      outcome := 'lost';
      return next;
      return;
    end if;
  end if;
  -- Subtracts the expired claim's answer from the account's used space.
  update idempotency_space s set bytes = s.bytes - c.bytes where s.account_id = c.account_id and c.bytes > 0;
  update idempotency_claim k set account_id = p_account, proof = p_proof, request_id = p_request, instance_id = p_instance, epoch = p_epoch,
    state = 'running', answer = null, bytes = 0, claimed_at = clock_timestamp(), expires_at = v_until
    where k.id = p_id;
  outcome := 'new';
  return next;
end $$;

-- Stores a request's encrypted answer, or null to record that it is not kept. Deletes the account's oldest answers to
-- make room.
create or replace function idempotency_keep(p_id text, p_request uuid, p_answer bytea, p_account_max bigint, p_total_max bigint) returns void
language plpgsql set enable_seqscan = off as $$
declare
  c idempotency_claim;
  v_bytes bigint := coalesce(length(p_answer), 0);
  v_used bigint;
  v_freed bigint;
begin
  select * into c from idempotency_claim k where k.id = p_id and k.request_id = p_request and k.state = 'running' for update;
  if not found then
    return;
  end if;
  if p_answer is not null then
    insert into idempotency_space (account_id, bytes) values (c.account_id, 0) on conflict do nothing;
    select s.bytes into v_used from idempotency_space s where s.account_id = c.account_id for update;
    while v_used > 0 and v_used + v_bytes > p_account_max loop
      with old as (
        select k.id, k.bytes from idempotency_claim k where k.account_id = c.account_id and k.state = 'answered'
          order by k.claimed_at limit 64 for update
      ), dropped as (
        update idempotency_claim k set state = 'unkept', answer = null, bytes = 0 from old where k.id = old.id returning old.bytes
      )
      select coalesce(sum(d.bytes), 0) into v_freed from dropped d;
      exit when v_freed = 0;
      v_used := v_used - v_freed;
    end loop;
    if v_used + v_bytes > p_account_max
        or (select sum(s.bytes) from idempotency_space s where s.account_id <> c.account_id) + v_used + v_bytes > p_total_max then
      p_answer := null;
      v_bytes := 0;
    end if;
    update idempotency_space s set bytes = v_used + v_bytes where s.account_id = c.account_id;
  end if;
  update idempotency_claim k set state = case when p_answer is null then 'unkept' else 'answered' end, answer = p_answer, bytes = v_bytes
    where k.id = p_id;
end $$;

-- True if a claim has expired by p_now and its request can no longer be running.
create or replace function idempotency_is_over(k idempotency_claim, p_now timestamptz) returns boolean
language sql stable as $$
  select k.expires_at < p_now and (k.state <> 'running' or not exists (
    select 1 from instance_now n where n.id = k.instance_id and n.epoch = k.epoch and n.state in ('joining', 'live', 'silent')))
$$;

-- Deletes claims that are a day old by both the database's clock and the caller's: up to p_rows for each of up to
-- p_rows accounts. Returns the number of claims.
create or replace function idempotency_forget(p_rows integer, p_now_ms double precision) returns integer
language plpgsql as $$
declare
  a record;
  v_freed bigint;
  v_gone integer;
  v_removed integer := 0;
  v_now timestamptz := least(clock_timestamp(), to_timestamp(p_now_ms / 1000.0));
begin
  for a in select distinct x.account_id from (
      select k.account_id from idempotency_claim k where k.expires_at < v_now and idempotency_is_over(k, v_now) order by k.expires_at limit p_rows) x order by 1 loop
    perform 1 from idempotency_space s where s.account_id = a.account_id for update;
    with gone as (
      delete from idempotency_claim k where k.id in (
        select o.id from idempotency_claim o where o.account_id = a.account_id and o.expires_at < v_now and idempotency_is_over(o, v_now) limit p_rows)
      returning k.bytes
    )
    select coalesce(sum(g.bytes), 0), count(*) into v_freed, v_gone from gone g;
    v_removed := v_removed + v_gone;
    update idempotency_space s set bytes = s.bytes - v_freed where s.account_id = a.account_id;
    delete from idempotency_space s where s.account_id = a.account_id and s.bytes <= 0;
  end loop;
  return v_removed;
end $$;
