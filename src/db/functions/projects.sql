-- Projects: groups of keys whose common budget is between the account's and the key's. Changes that instances must
-- apply are appended to the control log in the same statement. Lock order: top-up, account, key, project, budget,
-- control log.

-- A project as JSON, as instances keep it in memory. models null: all.
create or replace function project_fields(p project) returns jsonb
language sql stable as $$
  select jsonb_build_object('name', p.name, 'state', p.state, 'capNanoUsd', p.cap_nano_usd, 'capPeriod', p.cap_period,
    'models', case when jsonb_array_length(p.models) = 0 then null else p.models end,
    'requestsPerMinute', p.requests_per_minute, 'concurrencyMax', p.concurrency_max, 'tokensPerMinute', p.tokens_per_minute)
$$;

create or replace function project_etag(p project) returns text
language sql stable as $$
  select md5(p.id || project_fields(p)::text)
$$;

-- Id of the project in a request's list of budgets; null if the request has none.
create or replace function budgets_project(p_budgets text[]) returns text
language sql immutable as $$
  select case when p_budgets[1] like 'proj\_%' then p_budgets[1] end
$$;

-- Creates a project and its budget; false if the id exists. TG002: no such account. TG004: the account already has
-- p_most projects.
create or replace function project_create(p_id text, p_account text, p_patch jsonb, p_most integer default 1000) returns boolean
language plpgsql as $$
declare
  p project;
begin
  -- Allows one call per account at a time, so that two calls do not both take the last place.
  perform 1 from account a where a.id = p_account for no key update;
  if not found then
    raise exception 'There is no account {id}.' using errcode = 'TG002', detail = json_build_object('id', p_account);
  end if;
  if (select count(*) from project x where x.account_id = p_account and x.id <> p_id) >= p_most then
    raise exception 'An account has at most {count} projects.' using errcode = 'TG004', detail = json_build_object('count', p_most);
  end if;
  insert into project (id, account_id, name, cap_nano_usd, cap_period, models, requests_per_minute, concurrency_max, tokens_per_minute)
    values (p_id, p_account, p_patch ->> 'name', (p_patch ->> 'capNanoUsd')::bigint, coalesce(p_patch ->> 'capPeriod', 'lifetime'),
      coalesce(p_patch -> 'models', '[]'), (p_patch ->> 'requestsPerMinute')::integer, (p_patch ->> 'concurrencyMax')::integer,
      (p_patch ->> 'tokensPerMinute')::integer)
    on conflict do nothing returning * into p;
  if found then
    insert into budget (id, kind, account_id, limit_nano_usd)
      values (p_id, 'project', p_account, case when p.cap_period = 'lifetime' then p.cap_nano_usd end);
  end if;
  return p.id is not null;
end $$;

-- Checks the project for a key and locks it until commit, so that it is not archived before. Does nothing for null.
-- TG002: the account has no such project. TG004: the project is archived.
create or replace function project_for_key(p_id text, p_account text) returns text
language plpgsql as $$
declare
  v_state text;
begin
  if p_id is null then
    return null;
  end if;
  select x.state into v_state from project x where x.id = p_id and x.account_id = p_account for share;
  if not found then
    raise exception 'There is no project {id}.' using errcode = 'TG002', detail = json_build_object('id', p_id);
  end if;
  if v_state = 'archived' then
    raise exception 'The project is archived: it cannot get new keys.' using errcode = 'TG004';
  end if;
  return p_id;
end $$;

-- Changes the fields of a project that are in p_patch: name, capNanoUsd, capPeriod, models, requestsPerMinute,
-- concurrencyMax, tokensPerMinute; state archived, which is final. Returns the number of the last control entry.
-- Archiving again appends another control entry, for which the caller can wait.
-- - p_account: account that the project must belong to; null: any.
-- - p_match: entity tags, one of which must be the current one; null: any.
-- - TG002: no such project. TG004: it is archived. TG005: p_match differs.
create or replace function project_update(p_id text, p_account text, p_patch jsonb, p_match jsonb) returns bigint
language plpgsql as $$
declare
  p project;
  v_period text;
  v_seq bigint;
begin
  select * into p from project where id = p_id and (p_account is null or account_id = p_account) for update;
  if not found then
    raise exception 'There is no project {id}.' using errcode = 'TG002', detail = json_build_object('id', p_id);
  end if;
  v_period := p.cap_period;
  if p.state = 'archived' and p_patch <> '{"state":"archived"}' then
    raise exception 'The project is archived: it cannot be changed.' using errcode = 'TG004';
  end if;
  if p_match is not null and not p_match ? project_etag(p) then
    raise exception 'The project has changed since it was read. Read it again and retry.' using errcode = 'TG005';
  end if;
  if p_patch ? 'name' then p.name := p_patch ->> 'name'; end if;
  if p_patch ? 'capNanoUsd' then p.cap_nano_usd := (p_patch ->> 'capNanoUsd')::bigint; end if;
  if p_patch ? 'capPeriod' then p.cap_period := p_patch ->> 'capPeriod'; end if;
  if p_patch ? 'models' then p.models := p_patch -> 'models'; end if;
  if p_patch ? 'requestsPerMinute' then p.requests_per_minute := (p_patch ->> 'requestsPerMinute')::integer; end if;
  if p_patch ? 'concurrencyMax' then p.concurrency_max := (p_patch ->> 'concurrencyMax')::integer; end if;
  if p_patch ? 'tokensPerMinute' then p.tokens_per_minute := (p_patch ->> 'tokensPerMinute')::integer; end if;
  if p_patch ->> 'state' = 'archived' then
    p.state := 'archived';
    p.archived_at := coalesce(p.archived_at, clock_timestamp());
  end if;
  update project set name = p.name, state = p.state, archived_at = p.archived_at, cap_nano_usd = p.cap_nano_usd, cap_period = p.cap_period,
    models = p.models, requests_per_minute = p.requests_per_minute, concurrency_max = p.concurrency_max,
    tokens_per_minute = p.tokens_per_minute where id = p_id;
  v_seq := control_append('project', p_id, project_fields(p));
  return coalesce(cap_change(p_id, p.account_id, v_period, p.cap_period, p.cap_nano_usd, v_seq), v_seq);
end $$;

-- True if the key belongs to this person: a project's keys to all members of the project, other keys to their creator.
create or replace function key_is_of(k api_key, p_user text) returns boolean
language sql stable set enable_seqscan = off as $$
  select case when k.project_id is null then k.made_by is not distinct from p_user
    else exists (select 1 from project_member m where m.project_id = k.project_id and m.user_id = p_user) end
$$;
