-- Hourly sums of usage, from which all pages read.

create or replace function usage_class(p_ending text) returns text
language sql immutable as $$
  select case p_ending when 'finished' then 'ok' when 'client_left' then 'left' else 'failed' end
$$;

-- Start of the hour of a sum; if that is more than p_days ago, start of its day (UTC).
create or replace function usage_bucket(p_at timestamptz, p_days integer) returns timestamptz
language sql stable as $$
  select date_trunc(case when p_at < date_trunc('day', now() - make_interval(days => p_days), 'UTC') then 'day' else 'hour' end, p_at, 'UTC')
$$;

-- Adds usage rows committed since the last call to the hourly sums, each row once. Returns the number of rows; null if
-- another instance does this, or if transactions from before the clock was set back still run.
--
-- settled_at cannot tell which rows were counted, because it is the start of a transaction whose rows appear at commit.
-- So transaction numbers decide: all below the snapshot's xmin have ended and are visible. Rows older than a minute are
-- visible too, because every writer is a statement that the server ends after half a minute. Exception: a commit that
-- waits for a standby or disk; until it ends, the time of the sums (folded_at) does not advance. After the clock was
-- set back, new rows have past times, but transaction numbers above all that existed at the last call (newest).
create or replace function usage_fold() returns bigint
language plpgsql as $$
declare
  c usage_cursor;
  v_floor timestamptz;
  v_from timestamptz;
  v_at timestamptz;
  v_oldest timestamptz;
  v_frozen timestamptz := '-infinity';
  v_rows bigint;
  v_keys text[];
  v_used timestamptz[];
begin
  insert into usage_cursor (id) values (1) on conflict do nothing;
  select * into c from usage_cursor where id = 1 for update skip locked;
  if not found then
    return null;
  end if;
  if c.horizon is null or c.horizon > pg_current_xact_id()::text::bigint then
    -- Rebuilds the sums: at the first call, or after a restore, where transaction numbers start again. Sums of deleted
    -- requests stay, because they exist nowhere else (removal.sql).
    v_frozen := coalesce((select r.usage_frozen from removal r where r.id = 1), '-infinity');
    delete from usage_hour h where h.hour >= v_frozen;
    delete from usage_project_hour h where h.hour >= v_frozen;
    delete from service_hour h where h.hour >= v_frozen and h.model <> '';
    delete from model_speed h where h.hour >= v_frozen;
    c.horizon := 0; c.newest := 0; c.folded_at := null;
    v_floor := '-infinity';
  else
    v_floor := c.folded_at - interval '1 minute';
  end if;
  v_from := v_floor;
  -- Read before the rows, so that transactions that end in between are visible to the query of the rows.
  select min(a.xact_start) into v_oldest from pg_locks l join pg_stat_activity a on a.pid = l.pid
    where l.relation = 'usage_event'::regclass and l.mode = 'RowExclusiveLock'
      and l.database = (select d.oid from pg_database d where d.datname = current_database());
  v_at := least(clock_timestamp(), v_oldest + interval '1 minute');
  if clock_timestamp() < c.folded_at - interval '30 seconds' then
    -- The clock was set back since the last call. Rows that were counted by their age must have numbers below the
    -- horizon before sums can continue.
    if pg_snapshot_xmin(pg_current_snapshot())::text::bigint < c.newest then
      return null;
    end if;
    v_from := clock_timestamp() - interval '1 hour';
  else
    v_at := greatest(v_at, c.folded_at);
  end if;
  with seen as materialized (
    select s.horizon, s.horizon % 4294967296 as low, s.newest from (
      select pg_snapshot_xmin(n)::text::bigint as horizon, pg_snapshot_xmax(n)::text::bigint as newest from pg_current_snapshot() n) s
  ), fresh as materialized (
    select e.account_id, e.key_id, e.project_id, e.model, e.ending, e.admitted_at, e.prompt_tokens, e.cached_tokens, e.completion_tokens,
      e.reasoning_tokens, e.charged_nano_usd, e.written_off_nano_usd, e.duration_ms, e.first_token_ms,
      (e.settled_at < v_at - interval '1 minute' or x.xid < s.horizon)
        and (v_floor = '-infinity' or x.xid >= case when e.settled_at < v_floor then greatest(c.newest, c.horizon) else c.horizon end) as counts
    from seen s cross join usage_event e cross join lateral (
      -- The row's full transaction number: the number closest to the horizon that ends in the row's 32 bits.
      select s.horizon + ((e.xmin::text::bigint - s.low + 6442450944) % 4294967296) - 2147483648 as xid
    ) x where e.settled_at >= v_from and e.admitted_at >= v_frozen
  ), hours as materialized (
    select f.account_id, date_trunc('hour', f.admitted_at, 'UTC') as hour, f.project_id, f.key_id, f.model, usage_class(f.ending) as class,
      count(*) as requests, sum(f.prompt_tokens) as prompt_tokens, sum(f.cached_tokens) as cached_tokens,
      sum(f.completion_tokens) as completion_tokens, sum(f.reasoning_tokens) as reasoning_tokens, sum(f.charged_nano_usd) as charged_nano_usd,
      sum(f.written_off_nano_usd) as written_off_nano_usd, sum(f.duration_ms::double precision) as duration_ms,
      coalesce(sum(f.first_token_ms::double precision), 0) as first_token_ms, count(f.first_token_ms) as first_tokens
    from fresh f where f.counts group by 1, 2, 3, 4, 5, 6
  ), in_projects as (
    insert into usage_project_hour as h (account_id, hour, project_id, key_id, model, class, requests, prompt_tokens, cached_tokens,
      completion_tokens, reasoning_tokens, charged_nano_usd, written_off_nano_usd, duration_ms, first_token_ms, first_tokens)
    select s.account_id, s.hour, s.project_id, s.key_id, s.model, s.class, s.requests, s.prompt_tokens, s.cached_tokens,
      s.completion_tokens, s.reasoning_tokens, s.charged_nano_usd, s.written_off_nano_usd, s.duration_ms, s.first_token_ms, s.first_tokens
    from hours s where s.project_id is not null
    on conflict on constraint usage_project_hour_pk do update set
      requests = h.requests + excluded.requests, prompt_tokens = h.prompt_tokens + excluded.prompt_tokens,
      cached_tokens = h.cached_tokens + excluded.cached_tokens, completion_tokens = h.completion_tokens + excluded.completion_tokens,
      reasoning_tokens = h.reasoning_tokens + excluded.reasoning_tokens, charged_nano_usd = h.charged_nano_usd + excluded.charged_nano_usd,
      written_off_nano_usd = h.written_off_nano_usd + excluded.written_off_nano_usd, duration_ms = h.duration_ms + excluded.duration_ms,
      first_token_ms = h.first_token_ms + excluded.first_token_ms, first_tokens = h.first_tokens + excluded.first_tokens
  ), added as (
    insert into usage_hour as h (account_id, hour, key_id, model, class, requests, prompt_tokens, cached_tokens, completion_tokens,
      reasoning_tokens, charged_nano_usd, written_off_nano_usd, duration_ms, first_token_ms, first_tokens)
    select s.account_id, s.hour, s.key_id, s.model, s.class, sum(s.requests), sum(s.prompt_tokens), sum(s.cached_tokens),
      sum(s.completion_tokens), sum(s.reasoning_tokens), sum(s.charged_nano_usd), sum(s.written_off_nano_usd), sum(s.duration_ms),
      sum(s.first_token_ms), sum(s.first_tokens)
    from hours s group by 1, 2, 3, 4, 5
    on conflict (account_id, hour, key_id, model, class) do update set
      requests = h.requests + excluded.requests, prompt_tokens = h.prompt_tokens + excluded.prompt_tokens,
      cached_tokens = h.cached_tokens + excluded.cached_tokens, completion_tokens = h.completion_tokens + excluded.completion_tokens,
      reasoning_tokens = h.reasoning_tokens + excluded.reasoning_tokens, charged_nano_usd = h.charged_nano_usd + excluded.charged_nano_usd,
      written_off_nano_usd = h.written_off_nano_usd + excluded.written_off_nano_usd, duration_ms = h.duration_ms + excluded.duration_ms,
      first_token_ms = h.first_token_ms + excluded.first_token_ms, first_tokens = h.first_tokens + excluded.first_tokens
  ), in_service as (
    insert into service_hour as h (hour, model, code, requests, prompt_tokens, cached_tokens, completion_tokens, reasoning_tokens,
      charged_nano_usd, written_off_nano_usd, duration_ms, first_token_ms, first_tokens, cost_pico_usd)
    select usage_bucket(f.admitted_at, 40), f.model, f.ending, count(*), sum(f.prompt_tokens), sum(f.cached_tokens), sum(f.completion_tokens),
      sum(f.reasoning_tokens), sum(f.charged_nano_usd), sum(f.written_off_nano_usd), sum(f.duration_ms::double precision),
      coalesce(sum(f.first_token_ms::double precision), 0), count(f.first_token_ms),
      coalesce(sum(f.prompt_tokens * w.input_pico_usd::numeric + f.completion_tokens * w.output_pico_usd::numeric), 0)
    from fresh f left join model_cost w on w.model = f.model where f.counts group by 1, 2, 3
    on conflict (hour, model, code) do update set
      requests = h.requests + excluded.requests, prompt_tokens = h.prompt_tokens + excluded.prompt_tokens,
      cached_tokens = h.cached_tokens + excluded.cached_tokens, completion_tokens = h.completion_tokens + excluded.completion_tokens,
      reasoning_tokens = h.reasoning_tokens + excluded.reasoning_tokens, charged_nano_usd = h.charged_nano_usd + excluded.charged_nano_usd,
      written_off_nano_usd = h.written_off_nano_usd + excluded.written_off_nano_usd, duration_ms = h.duration_ms + excluded.duration_ms,
      first_token_ms = h.first_token_ms + excluded.first_token_ms, first_tokens = h.first_tokens + excluded.first_tokens,
      cost_pico_usd = h.cost_pico_usd + excluded.cost_pico_usd
  ), timed as (
    insert into model_speed as m (hour, model, kind, bucket, requests)
    select usage_bucket(f.admitted_at, 2), f.model, t.kind, floor(20 * log(greatest(t.size, 0.001)))::smallint, count(*)
    from fresh f cross join lateral (values
      ('first_token', f.first_token_ms::double precision),
      -- Output speed: tokens per second after the first token.
      ('rate', case when f.completion_tokens >= 16 and f.duration_ms > f.first_token_ms
        then 1000.0 * (f.completion_tokens - 1) / (f.duration_ms - f.first_token_ms)::double precision end)
    ) as t(kind, size)
    where f.counts and f.ending = 'finished' and f.admitted_at > v_at - interval '400 days' and t.size is not null
    group by 1, 2, 3, 4
    on conflict (hour, model, kind, bucket) do update set requests = m.requests + excluded.requests
  ), moved as (
    update usage_cursor u set horizon = s.horizon, newest = s.newest, folded_at = v_at from seen s where u.id = 1
  )
  select coalesce(sum(k.added), 0), array_agg(k.key_id), array_agg(k.at) into v_rows, v_keys, v_used from (
    select f.key_id, max(f.admitted_at) as at, count(*) filter (where f.counts) as added
    from fresh f group by 1
  ) k;
  -- Runs last, because the statements above may wait for locked rows of the sums: a lock on a key's row during that
  -- wait would delay the key's revocation. Keys with a locked row are left to the next call, which reads the last
  -- minute again.
  update api_key k set last_used_at = x.at from (
    select a.id, u.at from unnest(v_keys, v_used) as u(id, at) join api_key a on a.id = u.id
      where a.last_used_at is null or a.last_used_at < u.at for no key update of a skip locked
  ) x where k.id = x.id;
  return v_rows;
end $$;

-- Subtracts a request without cost and usage from the sums before it is deleted, if usage_fold has counted it. Raises
-- lock_not_available while usage_fold runs: the client retries.
create or replace function usage_take_back(p_id uuid) returns void
language plpgsql as $$
declare
  c usage_cursor;
  e usage_event;
begin
  select * into c from usage_cursor where id = 1 for update nowait;
  if c.horizon is null or c.horizon > pg_current_xact_id()::text::bigint then
    return; -- usage_fold will rebuild the sums, without this request
  end if;
  select * into e from usage_event u where u.request_id = p_id
      and c.horizon + ((u.xmin::text::bigint - c.horizon % 4294967296 + 6442450944) % 4294967296) - 2147483648
        < case when u.settled_at < c.folded_at - interval '1 minute' then greatest(c.newest, c.horizon) else c.horizon end;
  update usage_hour h set requests = h.requests - 1
    where h.account_id = e.account_id and h.hour = date_trunc('hour', e.admitted_at, 'UTC') and h.key_id = e.key_id
      and h.model = e.model and h.class = usage_class(e.ending);
  update usage_project_hour h set requests = h.requests - 1
    where h.account_id = e.account_id and h.hour = date_trunc('hour', e.admitted_at, 'UTC') and h.project_id = e.project_id
      and h.key_id = e.key_id and h.model = e.model and h.class = usage_class(e.ending);
  update service_hour h set requests = h.requests - 1
    where h.model = e.model and h.code = e.ending and h.hour = (select max(x.hour) from service_hour x where x.model = e.model and x.code = e.ending
      and x.hour in (date_trunc('hour', e.admitted_at, 'UTC'), date_trunc('day', e.admitted_at, 'UTC')));
end $$;

-- Sums old hours of the service's sums into the first hour of their day: usage after 40 days, speeds after 2. Deletes
-- speeds after 400 days. Reads only three days, because older ones are done. Does nothing while usage_fold runs.
create or replace function usage_roll() returns void
language plpgsql as $$
declare
  v_long timestamptz := date_trunc('day', now() - interval '40 days', 'UTC');
  v_short timestamptz := date_trunc('day', now() - interval '2 days', 'UTC');
begin
  perform 1 from usage_cursor where id = 1 for update skip locked;
  if not found then
    return;
  end if;
  with old as (
    delete from service_hour h where h.hour >= v_long - interval '3 days' and h.hour < v_long and h.hour <> date_trunc('day', h.hour, 'UTC') returning *
  )
  insert into service_hour as h (hour, model, code, requests, prompt_tokens, cached_tokens, completion_tokens, reasoning_tokens,
      charged_nano_usd, written_off_nano_usd, duration_ms, first_token_ms, first_tokens, cost_pico_usd)
    select date_trunc('day', o.hour, 'UTC'), o.model, o.code, sum(o.requests), sum(o.prompt_tokens), sum(o.cached_tokens), sum(o.completion_tokens),
      sum(o.reasoning_tokens), sum(o.charged_nano_usd), sum(o.written_off_nano_usd), sum(o.duration_ms), sum(o.first_token_ms), sum(o.first_tokens),
      sum(o.cost_pico_usd) from old o group by 1, 2, 3
    on conflict (hour, model, code) do update set
      requests = h.requests + excluded.requests, prompt_tokens = h.prompt_tokens + excluded.prompt_tokens,
      cached_tokens = h.cached_tokens + excluded.cached_tokens, completion_tokens = h.completion_tokens + excluded.completion_tokens,
      reasoning_tokens = h.reasoning_tokens + excluded.reasoning_tokens, charged_nano_usd = h.charged_nano_usd + excluded.charged_nano_usd,
      written_off_nano_usd = h.written_off_nano_usd + excluded.written_off_nano_usd, duration_ms = h.duration_ms + excluded.duration_ms,
      first_token_ms = h.first_token_ms + excluded.first_token_ms, first_tokens = h.first_tokens + excluded.first_tokens,
      cost_pico_usd = h.cost_pico_usd + excluded.cost_pico_usd;
  with old as (
    delete from replica_hour h where h.hour >= v_long - interval '3 days' and h.hour < v_long and h.hour <> date_trunc('day', h.hour, 'UTC') returning *
  )
  insert into replica_hour as h
    select date_trunc('day', o.hour, 'UTC'), o.model, o.replica, sum(o.seconds), sum(o.used_seconds), sum(o.place_seconds), sum(o.cost_nano_usd),
      max(o.sampled_at) from old o group by 1, 2, 3
    on conflict (hour, model, replica) do update set seconds = h.seconds + excluded.seconds, used_seconds = h.used_seconds + excluded.used_seconds,
      place_seconds = h.place_seconds + excluded.place_seconds, cost_nano_usd = h.cost_nano_usd + excluded.cost_nano_usd;
  with old as (
    delete from model_speed m where m.hour >= v_short - interval '3 days' and m.hour < v_short and m.hour <> date_trunc('day', m.hour, 'UTC') returning *
  )
  insert into model_speed as m select date_trunc('day', o.hour, 'UTC'), o.model, o.kind, o.bucket, sum(o.requests) from old o group by 1, 2, 3, 4
    on conflict (hour, model, kind, bucket) do update set requests = m.requests + excluded.requests;
  delete from model_speed m where m.hour < now() - interval '400 days';
end $$;

-- Adds the time since the last sample, at most two minutes, to the load and cost of each replica. Stores the cost of
-- tokens for later calls of usage_fold. Several consoles may sample: one at a time, and each adds only the time that no
-- other console has added.
create or replace function service_sample(p_replicas text, p_costs text) returns void
language plpgsql as $$
begin
  if not pg_try_advisory_xact_lock(hashtextextended('service sample', 0)) then
    return;
  end if;
  insert into model_cost as c select x.* from json_to_recordset(p_costs::json) as x(model text, input bigint, output bigint)
    on conflict (model) do update set input_pico_usd = excluded.input_pico_usd, output_pico_usd = excluded.output_pico_usd
    where (c.input_pico_usd, c.output_pico_usd) is distinct from (excluded.input_pico_usd, excluded.output_pico_usd);
  insert into replica_hour as h
    select date_trunc('hour', now(), 'UTC'), x.model, x.replica, t.seconds, t.seconds * x.used, t.seconds * x.places, t.seconds / 3600 * x.cost, now()
    from json_to_recordset(p_replicas::json) as x(model text, replica text, used double precision, places double precision, cost double precision)
      cross join lateral (
        select greatest(0, least(extract(epoch from now() - coalesce(max(p.sampled_at), now() - interval '1 minute')), 120))::double precision as seconds
        from replica_hour p where p.hour >= date_trunc('hour', now() - interval '1 hour', 'UTC') and p.model = x.model and p.replica = x.replica) t
    order by x.model, x.replica
    on conflict (hour, model, replica) do update set seconds = h.seconds + excluded.seconds, used_seconds = h.used_seconds + excluded.used_seconds,
      place_seconds = h.place_seconds + excluded.place_seconds, cost_nano_usd = h.cost_nano_usd + excluded.cost_nano_usd, sampled_at = excluded.sampled_at;
end $$;

-- An account's hourly sums. p_told: split by project ('' for none), of one project, or of all (null). Usage without a
-- project has no rows: it is the hour's total minus the projects' rows, which are returned as negative rows. So only
-- sums over all rows are meaningful, and a group whose requests sum to zero is empty.
create or replace function usage_split(p_account text, p_from timestamptz, p_to timestamptz, p_told boolean, p_project text)
returns table (hour timestamptz, project_id text, key_id text, model text, class text, requests bigint, prompt_tokens bigint, cached_tokens bigint,
  completion_tokens bigint, reasoning_tokens bigint, charged_nano_usd bigint, duration_ms double precision, first_token_ms double precision, first_tokens bigint)
language sql stable as $$
  select h.hour, ''::text, h.key_id, h.model, h.class, h.requests, h.prompt_tokens, h.cached_tokens, h.completion_tokens,
      h.reasoning_tokens, h.charged_nano_usd, h.duration_ms, h.first_token_ms, h.first_tokens
    from usage_hour h
    where (not p_told or coalesce(p_project, '') = '') and h.account_id = p_account and h.hour >= p_from and h.hour < p_to
  union all
  select h.hour, s.project_id, h.key_id, h.model, h.class, s.sign * h.requests, s.sign * h.prompt_tokens, s.sign * h.cached_tokens,
      s.sign * h.completion_tokens, s.sign * h.reasoning_tokens, s.sign * h.charged_nano_usd, s.sign * h.duration_ms,
      s.sign * h.first_token_ms, s.sign * h.first_tokens
    from usage_project_hour h cross join lateral (values (h.project_id, 1), ('', -1)) as s(project_id, sign)
    where p_told and (p_project is null or s.project_id = p_project) and (coalesce(p_project, '') = '' or h.project_id = p_project)
      and h.account_id = p_account and h.hour >= p_from and h.hour < p_to
$$;

-- An account's settled requests in a range, newest first: up to p_limit that follow the row (p_at, p_id). A filter that
-- is null matches everything; p_project '' matches requests outside projects. enable_sort, enable_bitmapscan = off: the
-- planner expects few rows and would sort them all, although an index has them in order.
create or replace function usage_page(p_account text, p_from timestamptz, p_to timestamptz, p_at timestamptz, p_id uuid,
  p_model text, p_key text, p_project text, p_status text, p_limit integer) returns setof usage_event
language plpgsql stable set enable_sort = off set enable_bitmapscan = off as $$
begin
  if p_key is not null then
    return query select u.* from usage_event u
      where u.key_id = p_key and u.account_id = p_account and u.admitted_at >= p_from and u.admitted_at < p_to
        -- A filter by key uses the key's index instead of the project's, because a key has fewer rows.
        and (p_at is null or (u.admitted_at, u.request_id) < (p_at, p_id)) and (p_project is null or u.project_id is not distinct from nullif(p_project, ''))
        and (p_model is null or u.model = p_model) and (p_status is null or usage_class(u.ending) = p_status)
      order by u.admitted_at desc, u.request_id desc limit p_limit;
    return;
  end if;
  if p_project <> '' then
    return query select u.* from usage_event u
      where u.project_id = p_project and u.account_id = p_account and u.admitted_at >= p_from and u.admitted_at < p_to
        and (p_at is null or (u.admitted_at, u.request_id) < (p_at, p_id))
        and (p_model is null or u.model = p_model) and (p_status is null or usage_class(u.ending) = p_status)
      order by u.admitted_at desc, u.request_id desc limit p_limit;
    return;
  end if;
  return query select u.* from usage_event u
    where u.account_id = p_account and u.admitted_at >= p_from and u.admitted_at < p_to and (p_project is null or u.project_id is null)
      and (p_at is null or (u.admitted_at, u.request_id) < (p_at, p_id))
      and (p_model is null or u.model = p_model) and (p_status is null or usage_class(u.ending) = p_status)
    order by u.admitted_at desc, u.request_id desc limit p_limit;
end $$;

-- Hours from p_from to p_to in which an account or key has requests of a model and class (null: any), newest first, up
-- to p_rows per model and class. The number of rows read depends on the number of models, not of hours. An hour is
-- returned once per sum. Row comparisons and order follow the index; otherwise the planner reads all hours if the model
-- has none. enable_sort, enable_bitmapscan = off: see usage_page.
create or replace function usage_hours(p_account text, p_key text, p_model text, p_status text, p_from timestamptz, p_to timestamptz,
  p_rows integer) returns table (hour timestamptz, requests bigint)
language plpgsql stable set enable_sort = off set enable_bitmapscan = off as $$
declare
  v_model text := p_model;
  v_class text;
begin
  loop
    if p_model is null and p_key is null then
      v_model := (select h.model from usage_hour h where h.account_id = p_account and h.model > coalesce(v_model, '') order by h.model limit 1);
    elsif p_model is null then
      v_model := (select h.model from usage_hour h where h.key_id = p_key and h.model > coalesce(v_model, '') order by h.model limit 1);
    end if;
    exit when v_model is null;
    foreach v_class in array case when p_status is null then array['ok', 'failed', 'left'] else array[p_status] end loop
      if p_key is null then
        return query select h.hour, h.requests from usage_hour h
          where (h.account_id, h.model, h.class, h.hour) >= (p_account, v_model, v_class, p_from)
            and (h.account_id, h.model, h.class, h.hour) < (p_account, v_model, v_class, p_to)
          order by h.account_id desc, h.model desc, h.class desc, h.hour desc limit p_rows;
      else
        return query select h.hour, h.requests from usage_hour h
          where (h.key_id, h.model, h.class, h.hour) >= (p_key, v_model, v_class, p_from)
            and (h.key_id, h.model, h.class, h.hour) < (p_key, v_model, v_class, p_to) and h.account_id = p_account
          order by h.key_id desc, h.model desc, h.class desc, h.hour desc limit p_rows;
      end if;
    end loop;
    exit when p_model is not null;
  end loop;
end $$;

-- Like usage_hours for a project, or for one of its keys (null: all), from the sums by project.
create or replace function usage_project_hours(p_account text, p_project text, p_key text, p_model text, p_status text, p_from timestamptz,
  p_to timestamptz, p_rows integer) returns table (hour timestamptz, requests bigint)
language plpgsql stable set enable_sort = off set enable_bitmapscan = off as $$
declare
  v_model text := p_model;
  v_class text;
begin
  loop
    if p_model is null and p_key is null then
      v_model := (select h.model from usage_project_hour h where h.project_id = p_project and h.model > coalesce(v_model, '') order by h.model limit 1);
    elsif p_model is null then
      v_model := (select h.model from usage_project_hour h where h.key_id = p_key and h.project_id = p_project and h.model > coalesce(v_model, '')
        order by h.model limit 1);
    end if;
    exit when v_model is null;
    foreach v_class in array case when p_status is null then array['ok', 'failed', 'left'] else array[p_status] end loop
      if p_key is null then
        return query select h.hour, h.requests from usage_project_hour h
          where (h.project_id, h.model, h.class, h.hour) >= (p_project, v_model, v_class, p_from)
            and (h.project_id, h.model, h.class, h.hour) < (p_project, v_model, v_class, p_to) and h.account_id = p_account
          order by h.project_id desc, h.model desc, h.class desc, h.hour desc limit p_rows;
      else
        return query select h.hour, h.requests from usage_project_hour h
          where (h.key_id, h.project_id, h.model, h.class, h.hour) >= (p_key, p_project, v_model, v_class, p_from)
            and (h.key_id, h.project_id, h.model, h.class, h.hour) < (p_key, p_project, v_model, v_class, p_to) and h.account_id = p_account
          order by h.key_id desc, h.project_id desc, h.model desc, h.class desc, h.hour desc limit p_rows;
      end if;
    end loop;
    exit when p_model is not null;
  end loop;
end $$;

-- The service's usage by p_group (model, code, account, project; project '': none) and p_bucket. Refused requests
-- without a model appear only in sums by code. Of accounts and projects, returns the 50 with the highest charge, and
-- the others together as `other`.
create or replace function service_usage(p_group text, p_bucket text, p_from timestamptz, p_to timestamptz, p_model text)
returns table (group_id text, at timestamptz, requests bigint, prompt_tokens bigint, cached_tokens bigint, completion_tokens bigint,
  reasoning_tokens bigint, charged_nano_usd bigint, duration_ms double precision, first_token_ms double precision, first_tokens bigint)
language sql stable as $$
  with in_projects as (
    select h.project_id, date_trunc(p_bucket, h.hour, 'UTC') as at, sum(h.requests) as n, sum(h.prompt_tokens) as p, sum(h.cached_tokens) as c,
      sum(h.completion_tokens) as o, sum(h.reasoning_tokens) as r, sum(h.charged_nano_usd) as nano, sum(h.duration_ms) as d, sum(h.first_token_ms) as f,
      sum(h.first_tokens) as fs
    from usage_project_hour h where p_group = 'project' and h.hour >= p_from and h.hour < p_to and (p_model is null or h.model = p_model) group by 1, 2
  ), parts as (
    select h.account_id as id, date_trunc(p_bucket, h.hour, 'UTC') as at, sum(h.requests) as n, sum(h.prompt_tokens) as p, sum(h.cached_tokens) as c,
      sum(h.completion_tokens) as o, sum(h.reasoning_tokens) as r, sum(h.charged_nano_usd) as nano, sum(h.duration_ms) as d, sum(h.first_token_ms) as f,
      sum(h.first_tokens) as fs
    from usage_hour h where p_group = 'account' and h.hour >= p_from and h.hour < p_to and (p_model is null or h.model = p_model) group by 1, 2
    union all
    select case p_group when 'model' then h.model when 'code' then h.code else '' end, date_trunc(p_bucket, h.hour, 'UTC'), sum(h.requests),
      sum(h.prompt_tokens), sum(h.cached_tokens), sum(h.completion_tokens), sum(h.reasoning_tokens), sum(h.charged_nano_usd), sum(h.duration_ms),
      sum(h.first_token_ms), sum(h.first_tokens)
    from service_hour h where p_group <> 'account' and h.hour >= p_from and h.hour < p_to and (h.model <> '' or p_group = 'code')
      and (p_model is null or h.model = p_model) group by 1, 2
    union all
    select * from in_projects
    union all
    select '', i.at, -i.n, -i.p, -i.c, -i.o, -i.r, -i.nano, -i.d, -i.f, -i.fs from in_projects i
  ), top as (
    select t.id from parts t group by 1 order by sum(t.nano) desc, t.id limit case when p_group in ('account', 'project') then 50 end
  )
  select coalesce(t.id, 'other'), x.at, sum(x.n)::bigint, sum(x.p)::bigint, sum(x.c)::bigint, sum(x.o)::bigint, sum(x.r)::bigint, sum(x.nano)::bigint,
    sum(x.d), sum(x.f), sum(x.fs)::bigint
  from parts x left join top t on t.id = x.id group by 1, 2 having sum(x.n) > 0
$$;

-- Medians and 95th percentiles of speeds (table model_speed) by model, kind and p_bucket; p_bucket null: over the whole
-- range.
create or replace function service_speed(p_bucket text, p_from timestamptz, p_to timestamptz, p_model text)
returns table (model text, kind text, at timestamptz, requests bigint, median smallint, high smallint)
language sql stable as $$
  with classes as (
    select m.model, m.kind, date_trunc(p_bucket, m.hour, 'UTC') as at, m.bucket, sum(m.requests) as n from model_speed m
      where m.hour >= p_from and m.hour < p_to and (p_model is null or m.model = p_model) group by 1, 2, 3, 4
  ), counted as (
    select c.*, sum(c.n) over (partition by c.model, c.kind, c.at order by c.bucket) as seen,
      sum(c.n) over (partition by c.model, c.kind, c.at) as total from classes c
  )
  select c.model, c.kind, c.at, max(c.total)::bigint, min(c.bucket) filter (where c.seen * 2 >= c.total),
    min(c.bucket) filter (where c.seen * 100 >= c.total * 95) from counted c group by 1, 2, 3
$$;
