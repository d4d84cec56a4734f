-- Managed batches. A run is the work of one instance on a batch and has a number; statements of earlier runs have no
-- effect. Lock order: the batch, then its lines by number.

create or replace function unix_ms(p_time timestamptz) returns bigint
language sql immutable as $$
  select floor(extract(epoch from p_time) * 1000)::bigint
$$;

-- A batch as JSON, as `batches.ts` reads it.
create or replace function batch_fields(b batch) returns jsonb
language sql stable as $$
  select jsonb_build_object('id', b.id, 'accountId', b.account_id, 'keyId', b.key_id, 'endpoint', b.endpoint,
    'inputFileId', b.input_file_id, 'completionWindow', b.completion_window, 'metadata', b.metadata,
    'outputExpiresS', b.output_expires_s, 'state', b.state, 'ending', b.ending, 'run', b.run, 'model', b.model,
    'paused', b.paused, 'errors', b.errors, 'total', b.total, 'completed', b.completed, 'failed', b.failed,
    'promptTokens', b.prompt_tokens, 'cachedTokens', b.cached_tokens, 'completionTokens', b.completion_tokens,
    'reasoningTokens', b.reasoning_tokens, 'chargedNanoUsd', b.charged_nano_usd,
    'outputFileId', b.output_file_id, 'errorFileId', b.error_file_id)
    || jsonb_build_object('createdAtMs', unix_ms(b.created_at), 'expiresAtMs', unix_ms(b.expires_at),
    'inProgressAtMs', unix_ms(b.in_progress_at), 'finalizingAtMs', unix_ms(b.finalizing_at),
    'completedAtMs', unix_ms(b.completed_at), 'failedAtMs', unix_ms(b.failed_at), 'expiredAtMs', unix_ms(b.expired_at),
    'cancellingAtMs', unix_ms(b.cancelling_at), 'cancelledAtMs', unix_ms(b.cancelled_at))
$$;

-- Creates a batch; null if the account has p_open_max open batches. Returns the existing batch if the id or the
-- client's idempotency key (p_key) was used before. The batch's time window counts by the database's clock, because
-- gateways' clocks may differ by a day.
create or replace function batch_create(p_id text, p_account text, p_key text, p_endpoint text, p_input text, p_window text,
  p_metadata jsonb, p_output_expires_s integer, p_idempotency text, p_window_ms double precision,
  p_open_max integer) returns jsonb
language plpgsql as $$
declare
  b batch;
begin
  -- Allows one call per account at a time, so that two calls do not both take the last place.
  perform pg_advisory_xact_lock(hashtextextended('batch ' || p_account, 0));
  select * into b from batch where id = p_id or (key_id = p_key and idempotency_key = p_idempotency);
  if found then
    return batch_fields(b);
  end if;
  if (select count(*) from batch where account_id = p_account and state in ('validating', 'in_progress', 'finalizing', 'cancelling')) >= p_open_max then
    return null;
  end if;
  insert into batch (id, account_id, key_id, endpoint, input_file_id, completion_window, metadata, output_expires_s,
      idempotency_key, state, created_at, expires_at)
    values (p_id, p_account, p_key, p_endpoint, p_input, p_window, p_metadata, p_output_expires_s, p_idempotency, 'validating',
      now(), now() + p_window_ms * interval '1 millisecond')
    returning * into b;
  return batch_fields(b);
end $$;

-- Claims lines for this run before their requests are sent. p_lines: [{line, id, was}]; `id` is the new request, `was`
-- the one for which this run claimed the line before. Returns the lines to send; a repeated call returns them again.
-- Leaves out lines that another request has claimed. Returns none if the batch is ending or in another run.
create or replace function batch_claim(p_id text, p_run integer, p_lines json) returns setof integer
language plpgsql as $$
begin
  perform 1 from batch b where b.id = p_id and b.run = p_run and b.state = 'in_progress' for share;
  if not found then
    return;
  end if;
  return query
    with x as materialized (
      select r.line, r.id, r.was from json_to_recordset(p_lines) as r(line integer, id uuid, was uuid)
    ), again as (
      update batch_line l set request_id = x.id, state = 'claimed' from x
      where l.batch_id = p_id and l.line = x.line
        and (l.state = 'free' or (l.state = 'claimed' and (l.request_id = x.id or l.request_id = x.was)))
      returning l.line
    ), fresh as (
      insert into batch_line as l (batch_id, line, request_id, state)
        select p_id, x.line, x.id, 'claimed' from x
        where not exists (select 1 from batch_line o where o.batch_id = p_id and o.line = x.line)
      on conflict do nothing returning l.line
    )
    select a.line from again a union all select f.line from fresh f;
end $$;

-- Records, before a part of the output is stored, which lines' outcomes the part contains and which lines are freed.
-- p_lines: [{line, id, state, part, promptTokens, cachedTokens, completionTokens, reasoningTokens, charged}]. False if
-- the batch is in another run. Repeatable.
create or replace function batch_outcomes(p_id text, p_run integer, p_lines json) returns boolean
language plpgsql as $$
begin
  perform 1 from batch b where b.id = p_id and b.run = p_run for share;
  if not found then
    return false;
  end if;
  insert into batch_line as l (batch_id, line, request_id, state, part, prompt_tokens, cached_tokens, completion_tokens, reasoning_tokens, charged_nano_usd)
    select p_id, x.line, x.id, x.state, x.part, x."promptTokens", x."cachedTokens", x."completionTokens", x."reasoningTokens", x.charged
    from json_to_recordset(p_lines) as x(line integer, id uuid, state text, part integer, "promptTokens" integer,
      "cachedTokens" integer, "completionTokens" integer, "reasoningTokens" integer, charged bigint)
    order by x.line
  on conflict (batch_id, line) do update set request_id = excluded.request_id, state = excluded.state, part = excluded.part,
    prompt_tokens = excluded.prompt_tokens, cached_tokens = excluded.cached_tokens, completion_tokens = excluded.completion_tokens,
    reasoning_tokens = excluded.reasoning_tokens, charged_nano_usd = excluded.charged_nano_usd
    -- Does not free a line that another request has claimed since.
    where excluded.state <> 'free' or (l.state = 'claimed' and l.request_id = excluded.request_id);
  return true;
end $$;

-- Frees lines whose requests an earlier run did not finish, before this run claims lines. p_lines: [{line, id}].
-- Records each request as lost, so that its charge is refunded once the request is settled. False if the batch is in
-- another run. Repeatable.
create or replace function batch_reopen(p_id text, p_run integer, p_lines json) returns boolean
language plpgsql as $$
declare
  b batch;
begin
  select * into b from batch where id = p_id and run = p_run for share;
  if not found then
    return false;
  end if;
  insert into batch_lost_request (request_id, batch_id, account_id)
    select l.request_id, p_id, b.account_id
    from json_to_recordset(p_lines) as x(line integer, id uuid)
      join batch_line l on l.batch_id = p_id and l.line = x.line and l.request_id = x.id and l.state <> 'free'
    on conflict do nothing;
  update batch_line l set state = 'free', part = null, prompt_tokens = 0, cached_tokens = 0, completion_tokens = 0,
    reasoning_tokens = 0, charged_nano_usd = 0
    from json_to_recordset(p_lines) as x(line integer, id uuid)
    where l.batch_id = p_id and l.line = x.line and l.request_id = x.id;
  return true;
end $$;

-- Refunds the charge of a lost request and deletes its row in batch_lost_request, so that it is refunded once. Returns
-- the charge; null if the request is not settled yet or has no such row.
create or replace function batch_credit_lost(p_request uuid, p_entry_id text) returns bigint
language plpgsql as $$
declare
  l batch_lost_request;
  charged bigint;
begin
  select * into l from batch_lost_request where request_id = p_request for update;
  select u.charged_nano_usd into charged from usage_event u where u.request_id = p_request;
  if l.request_id is null or charged is null then
    return null;
  end if;
  delete from batch_lost_request where request_id = p_request;
  if charged > 0 then
    perform ledger_book(p_entry_id, l.account_id, 'adjustment', charged, 'batch-lost:' || p_request, 'batch',
      'A request of ' || l.batch_id || ' was interrupted and sent again', false);
  end if;
  return charged;
end $$;
