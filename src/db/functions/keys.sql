-- Keys and accounts. Changes that instances must apply are appended to the control log in the same statement. Lock
-- order: top-up, account, key, project, budget, control log.

-- A key as JSON, as instances keep it in memory. Times are Unix milliseconds. models null: the key may use all.
create or replace function key_fields(k api_key) returns jsonb
language sql stable as $$
  select jsonb_build_object('id', k.id, 'accountId', k.account_id, 'name', k.name, 'state', k.state,
    'capNanoUsd', k.cap_nano_usd, 'capPeriod', k.cap_period, 'models', case when jsonb_array_length(k.models) = 0 then null else k.models end,
    'expiresAtMs', (extract(epoch from k.expires_at) * 1000)::bigint,
    'requestsPerMinute', k.requests_per_minute, 'concurrencyMax', k.concurrency_max, 'tokensPerMinute', k.tokens_per_minute,
    'readsOnly', k.reads_only, 'projectId', k.project_id)
$$;

-- An account as JSON, as instances keep it in memory.
create or replace function account_fields(a account) returns jsonb
language sql stable as $$
  select jsonb_build_object('state', a.state, 'toppedUp', a.topped_up, 'signedIn', a.signed_in_at is not null,
    'timeZone', a.time_zone, 'tags', a.tags, 'tokensPerMinute', a.tokens_per_minute, 'agreements', a.agreements)
$$;

-- Entity tag of a key's changeable fields. Spending and the time of last use do not change it.
create or replace function key_etag(k api_key) returns text
language sql stable as $$
  select md5(key_fields(k)::text)
$$;

create or replace function account_etag(a account) returns text
language sql stable as $$
  select md5(jsonb_build_object('id', a.id, 'name', a.name, 'email', a.email, 'fields', account_fields(a))::text)
$$;

-- Changes the fields of an account that are in p_patch: name, state, timeZone, tags, tokensPerMinute. p_match: entity
-- tags, one of which must be the current one; null: any. Returns the control entry's number, also if the state stays
-- the same; null if only the name changed. TG002: no such account. TG005: p_match differs.
create or replace function account_update(p_id text, p_patch jsonb, p_match jsonb) returns bigint
language plpgsql as $$
declare
  a account;
  v_zone text := p_patch ->> 'timeZone';
begin
  select * into a from account where id = p_id for update;
  if not found then
    raise exception 'There is no account {id}.' using errcode = 'TG002', detail = json_build_object('id', p_id);
  end if;
  if p_match is not null and not p_match ? account_etag(a) then
    raise exception 'The account has changed since it was read. Read it again and retry.' using errcode = 'TG005';
  end if;
  if v_zone is not null then
    begin
      perform clock_timestamp() at time zone v_zone;
    exception when invalid_parameter_value then
      raise exception 'The database has no time zone {zone}. Use a name such as Europe/Berlin.' using errcode = 'TG004', detail = json_build_object('zone', v_zone);
    end;
  end if;
  update account set name = coalesce(p_patch ->> 'name', name), state = coalesce(p_patch ->> 'state', state), time_zone = coalesce(v_zone, time_zone),
      tags = coalesce(p_patch -> 'tags', tags),
      tokens_per_minute = case when p_patch ? 'tokensPerMinute' then (p_patch ->> 'tokensPerMinute')::integer else tokens_per_minute end
    where id = p_id returning * into a;
  if p_patch ->> 'state' = 'suspended' then
    -- A suspension by an operator must outlast disputes: clears the mark by which winning a dispute would end the
    -- suspension.
    update stripe_dispute d set suspended = false from top_up t join stripe_payment p on p.top_up_id = t.id
      where t.account_id = p_id and d.payment_id = p.id and d.suspended;
  end if;
  return case when p_patch - 'name' <> '{}' then control_append('account', p_id, account_fields(a)) end;
end $$;

-- Changes the fields of a key that are in p_patch: name, capNanoUsd, capPeriod, models, expiresAtMs, requestsPerMinute,
-- concurrencyMax, tokensPerMinute, projectId. Returns the number of the last control entry.
-- - p_account: account that the key must belong to; null: any.
-- - p_match: entity tags, one of which must be the current one; null: any.
-- - p_most: limit as in `key_room`, if an expired key becomes usable again.
-- - TG002: no such key or project.
-- - TG004: the key is revoked, or read-only with a cap given; the project is archived; or the account has p_most usable
--   keys.
-- - TG005: p_match differs.
create or replace function key_update(p_id text, p_account text, p_patch jsonb, p_match jsonb, p_most integer default null) returns bigint
language plpgsql as $$
declare
  k api_key;
  v_period text;
  v_ended boolean;
  v_seq bigint;
begin
  if p_most is not null and p_patch ? 'expiresAtMs' then
    -- Locks the account before the key, as every function does. A key never changes its account.
    perform 1 from account a where a.id = (select o.account_id from api_key o where o.id = p_id) for no key update;
  end if;
  select * into k from api_key where id = p_id and (p_account is null or account_id = p_account) for update;
  if not found then
    raise exception 'There is no key {id}.' using errcode = 'TG002', detail = json_build_object('id', p_id);
  end if;
  v_period := k.cap_period;
  if k.state = 'revoked' then
    raise exception 'The key was revoked: it cannot be changed.' using errcode = 'TG004';
  end if;
  if p_match is not null and not p_match ? key_etag(k) then
    raise exception 'The key has changed since it was read. Read it again and retry.' using errcode = 'TG005';
  end if;
  if p_patch ? 'name' then k.name := p_patch ->> 'name'; end if;
  if p_patch ?| array['capNanoUsd', 'capPeriod'] and k.reads_only then
    raise exception 'A read-only key has no cap to change.' using errcode = 'TG004';
  end if;
  if p_patch ? 'capNanoUsd' then k.cap_nano_usd := (p_patch ->> 'capNanoUsd')::bigint; end if;
  if p_patch ? 'capPeriod' then k.cap_period := p_patch ->> 'capPeriod'; end if;
  if p_patch ? 'models' then k.models := p_patch -> 'models'; end if;
  if p_patch ? 'expiresAtMs' then
    v_ended := k.expires_at <= clock_timestamp();
    k.expires_at := to_timestamp((p_patch ->> 'expiresAtMs')::double precision / 1000.0);
    if v_ended and (k.expires_at is null or k.expires_at > clock_timestamp()) then
      perform key_room(k.account_id, '', p_most);
    end if;
  end if;
  if p_patch ? 'requestsPerMinute' then k.requests_per_minute := (p_patch ->> 'requestsPerMinute')::integer; end if;
  if p_patch ? 'concurrencyMax' then k.concurrency_max := (p_patch ->> 'concurrencyMax')::integer; end if;
  if p_patch ? 'tokensPerMinute' then k.tokens_per_minute := (p_patch ->> 'tokensPerMinute')::integer; end if;
  if p_patch ? 'projectId' then k.project_id := project_for_key(p_patch ->> 'projectId', k.account_id); end if;
  update api_key set name = k.name, project_id = k.project_id, cap_nano_usd = k.cap_nano_usd, cap_period = k.cap_period, models = k.models,
    expires_at = k.expires_at, requests_per_minute = k.requests_per_minute, concurrency_max = k.concurrency_max,
    tokens_per_minute = k.tokens_per_minute where id = p_id;
  v_seq := control_append('key', p_id, key_fields(k));
  return coalesce(cap_change(p_id, k.account_id, v_period, k.cap_period, k.cap_nano_usd, v_seq), v_seq);
end $$;

-- Checks that an account may have another usable key; p_most is the limit (null: none). Locks the account until commit,
-- so that concurrent calls count each other's keys. A key that exists passes, so that a repeated call is not refused.
-- Expired keys do not count. Returns true; TG004 at the limit.
create or replace function key_room(p_account text, p_id text, p_most integer) returns boolean
language plpgsql as $$
begin
  if p_most is null then
    return true;
  end if;
  perform 1 from account a where a.id = p_account for no key update;
  if (select count(*) from api_key k where k.account_id = p_account and k.state = 'active'
      and (k.expires_at is null or k.expires_at > clock_timestamp())) >= p_most
      and not exists (select 1 from api_key k where k.id = p_id) then
    raise exception 'An account has at most {count} keys in use. Revoke some first.' using errcode = 'TG004', detail = json_build_object('count', p_most);
  end if;
  return true;
end $$;

-- Like key_room, for management keys, whose limit applies to the whole service.
create or replace function management_key_room(p_id text, p_most integer) returns boolean
language plpgsql as $$
begin
  perform pg_advisory_xact_lock(hashtextextended('management keys', 0));
  if (select count(*) from management_key where revoked_at is null and (expires_at is null or expires_at > clock_timestamp())) >= p_most
      and not exists (select 1 from management_key where id = p_id) then
    raise exception '{count} management keys are already in use. Revoke some first.' using errcode = 'TG004', detail = json_build_object('count', p_most);
  end if;
  return true;
end $$;

-- Creates a replacement of a key with the same settings. The old key ends after p_grace_ms; 0: at once. Returns the
-- replacement and the number of the last control entry. A repetition with the same digest within an hour only appends
-- another control entry, for which the caller can wait. TG002: no such key. TG004: the key is not usable, or the
-- account has p_most usable keys.
create or replace function key_rotate(p_id text, p_account text, p_new_id text, p_digest text, p_prefix text, p_last_four text, p_grace_ms double precision, p_most integer default null)
returns table (id text, seq bigint)
language plpgsql as $$
#variable_conflict use_column
declare
  k api_key;
  n api_key;
  v_end timestamptz := clock_timestamp() + make_interval(secs => p_grace_ms / 1000.0);
begin
  -- Locks the account before the key, as every function does. A key never changes its account.
  perform 1 from account a where a.id = (select o.account_id from api_key o where o.id = p_id) for no key update;
  select * into k from api_key where id = p_id and (p_account is null or account_id = p_account) for update;
  if not found then
    raise exception 'There is no key {id}.' using errcode = 'TG002', detail = json_build_object('id', p_id);
  end if;
  select * into n from api_key where id = k.replaced_by and digest = p_digest and created_at > clock_timestamp() - interval '1 hour';
  if found then
    return query select n.id, control_append('key', p_id, key_fields(k));
    return;
  end if;
  if k.state = 'revoked' or k.expires_at <= clock_timestamp() then
    raise exception 'The key is revoked or expired: create a new one.' using errcode = 'TG004';
  end if;
  if k.replaced_by is not null then
    raise exception 'The key was already replaced by {id}.' using errcode = 'TG004', detail = json_build_object('id', k.replaced_by);
  end if;
  perform key_room(k.account_id, p_new_id, p_most);
  insert into api_key (id, account_id, name, digest, prefix, last_four, cap_nano_usd, cap_period, models, expires_at, requests_per_minute, concurrency_max, tokens_per_minute, made_by, reads_only, project_id)
    values (p_new_id, k.account_id, k.name, p_digest, p_prefix, p_last_four, k.cap_nano_usd, k.cap_period, k.models, k.expires_at, k.requests_per_minute, k.concurrency_max, k.tokens_per_minute, k.made_by, k.reads_only, k.project_id)
    returning * into n;
  insert into budget (id, kind, account_id, limit_nano_usd) values (p_new_id, 'key', k.account_id, case when k.cap_period = 'lifetime' then k.cap_nano_usd end);
  update api_key set replaced_by = p_new_id,
      state = case when p_grace_ms <= 0 then 'revoked' else state end,
      revoked_at = case when p_grace_ms <= 0 then clock_timestamp() else revoked_at end,
      expires_at = case when p_grace_ms <= 0 then expires_at else least(expires_at, v_end) end
    where id = p_id returning * into k;
  perform control_append('key', p_new_id, key_fields(n));
  return query select n.id, control_append('key', p_id, key_fields(k));
end $$;
