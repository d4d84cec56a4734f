-- Finds events for which an account wants notices. Each event creates its notices once, however many consoles check.

-- Inserts the notices of an event. The webhook gets one if the account subscribed to the type. Members with a role of
-- p_roles get mails if it subscribed or p_mailed is true.
create or replace function alert_notice(p_account text, p_type text, p_data jsonb, p_roles jsonb, p_mailed boolean) returns void
language plpgsql as $$
declare
  v_id text := 'evt_' || replace(gen_random_uuid()::text, '-', '');
begin
  insert into batch_notice (batch_id, account_id, channel, user_id, type, data)
    select v_id, p_account, 'webhook', '', p_type, p_data from batch_notice_setting s
      where s.account_id = p_account and s.webhook_url is not null and s.events ? p_type
    union all
    select v_id, p_account, 'mail', m.user_id, p_type, p_data from member m
      where m.account_id = p_account and p_roles ? m.role
        and (p_mailed or exists (select 1 from batch_notice_setting s where s.account_id = p_account and s.events ? p_type));
end $$;

-- Like alert_notice, but at most once per account and p_mark. Without a subscription only mails are sent, and only if
-- p_mailed is true.
create or replace function alert_tell(p_account text, p_mark text, p_type text, p_data jsonb, p_roles jsonb, p_mailed boolean default false)
returns void language plpgsql as $$
begin
  if not p_mailed and not exists (select 1 from batch_notice_setting s where s.account_id = p_account and s.events ? p_type) then
    return;
  end if;
  insert into alert_mark (account_id, mark) values (p_account, p_mark) on conflict do nothing;
  if found then
    perform alert_notice(p_account, p_type, p_data, p_roles, p_mailed);
  end if;
end $$;

-- Checks accounts that changed, reading up to p_limit rows of alert_touched. Mails go to members with a role of
-- p_roles. Returns the number of deleted rows; 0 if another console is checking.
-- - Notices commit together with the deletion of the rows, so a console that dies leaves its work to the next check.
-- - Locked rows belong to running transactions; the next check reads them.
-- - Up to 500 other rows of a checked account are deleted too, so that a busy account does not use up the limit.
create or replace function alerts_look(p_limit integer, p_roles jsonb) returns integer
language plpgsql set enable_seqscan = off as $$
declare
  v_seen integer;
  v_accounts text[];
  v_account text;
  v_events jsonb;
begin
  if not pg_try_advisory_xact_lock(hashtextextended('alerts', 0)) then
    return 0;
  end if;
  with oldest as materialized (
    select distinct o.account_id from (select x.account_id from alert_touched x order by x.id limit p_limit for update skip locked) o
  ), taken as (
    delete from alert_touched t where t.id in (
      select x.id from oldest o cross join lateral (
        select y.id from alert_touched y where y.account_id = o.account_id limit 500 for update skip locked) x) returning t.account_id
  )
  select count(*), array_agg(distinct t.account_id) into v_seen, v_accounts from taken t;
  foreach v_account in array coalesce(v_accounts, '{}') loop
    v_events := (select s.events from batch_notice_setting s where s.account_id = v_account);
    perform alert_credit(v_account, p_roles);
    if v_events ? 'key.cap_reached' then
      perform alert_caps(v_account, p_roles);
    end if;
    if v_events ? 'project.cap_reached' then
      perform alert_project_caps(v_account, p_roles);
    end if;
    if v_events ? 'top_up.confirmed' then
      perform alert_top_ups(v_account, p_roles);
    end if;
    if v_events ? 'spend.unusual' then
      perform alert_unusual(v_account, p_roles);
    end if;
  end loop;
  return v_seen;
end $$;

-- Notice of credit below the account's threshold. The console that clears `armed` creates the notices; credit above the
-- threshold sets `armed` again.
create or replace function alert_credit(p_account text, p_roles jsonb) returns void
language plpgsql as $$
declare
  r record;
begin
  with seen as (
    select c.account_id, c.threshold_nano_usd as threshold, b.limit_nano_usd - budget_spent(b.id) as balance
      from credit_alert c join budget b on b.id = c.account_id where c.account_id = p_account
  )
  update credit_alert c set armed = s.balance >= s.threshold,
      last_sent_at = case when s.balance < s.threshold then clock_timestamp() else c.last_sent_at end
    from seen s where s.account_id = c.account_id and c.armed is distinct from (s.balance >= s.threshold)
    returning c.armed, s.threshold, s.balance into r;
  if found and not r.armed then
    perform alert_notice(p_account, 'credit.low',
      jsonb_build_object('balance', r.balance::text, 'threshold', r.threshold::text), p_roles, true);
  end if;
end $$;

-- Notices of key caps: one at 80 % and one at 100 %, once per cap and period. Checks the 1,000 most recently used keys
-- with usage in the last hour.
create or replace function alert_caps(p_account text, p_roles jsonb) returns void
language sql as $$
  select alert_tell(p_account, 'cap:' || x.budget || ':' || p.percent || ':' || x.cap, 'key.cap_reached', jsonb_build_object(
      'key_id', x.id, 'last_four', x.last_four, 'percent', p.percent, 'period', x.cap_period, 'cap', x.cap::text, 'spent', x.spent::text), p_roles)
  from (
    select k.id, k.last_four, k.cap_period, k.cap_nano_usd as cap, b.id as budget, budget_spent(b.id) as spent
    from (
      select * from api_key a
      where a.account_id = p_account and a.state = 'active' and a.cap_nano_usd > 0 and a.last_used_at > now() - interval '1 hour'
      order by a.last_used_at desc limit 1000
    ) a join api_key k on k.id = a.id join budget b on b.id = cap_budget(k)
  ) x join lateral (
    -- Notifies only of the highest threshold reached: at 100 % there is no notice for 80 %.
    select max(v.percent) as percent from (values (80), (100)) as v(percent) where x.spent::numeric * 100 >= x.cap::numeric * v.percent
  ) p on p.percent is not null
$$;

-- Notices of project caps, like alert_caps. Checks all projects of the account, which are at most 1,000.
create or replace function alert_project_caps(p_account text, p_roles jsonb) returns void
language sql as $$
  select alert_tell(p_account, 'cap:' || x.budget || ':' || p.percent || ':' || x.cap, 'project.cap_reached', jsonb_build_object(
      'project_id', x.id, 'percent', p.percent, 'period', x.cap_period, 'cap', x.cap::text, 'spent', x.spent::text), p_roles)
  from (
    select j.id, j.cap_period, j.cap_nano_usd as cap, b.id as budget, budget_spent(b.id) as spent
    from project j join budget b on b.id = cap_budget(j)
    where j.account_id = p_account and j.state = 'active' and j.cap_nano_usd > 0
      and exists (select 1 from api_key a where a.project_id = j.id and a.last_used_at > now() - interval '1 hour')
  ) x join lateral (
    select max(v.percent) as percent from (values (80), (100)) as v(percent) where x.spent::numeric * 100 >= x.cap::numeric * v.percent
  ) p on p.percent is not null
$$;

-- Notices of top-ups that were confirmed within a day and since the account subscribed. Reads today's ledger entries,
-- because a bank transfer may have been created long before its confirmation.
create or replace function alert_top_ups(p_account text, p_roles jsonb) returns void
language sql as $$
  select alert_tell(p_account, 'topup:' || t.id, 'top_up.confirmed',
    jsonb_build_object('id', t.id, 'amount', t.amount_nano_usd::text, 'method', t.method), p_roles)
  from ledger_entry e join top_up t on t.id = substr(e.source_ref, 7)
  join batch_notice_setting s on s.account_id = p_account
  where e.account_id = p_account and e.created_at > now() - interval '25 hours' and e.kind = 'top_up' and e.source_ref like 'topup:%'
    and t.state = 'confirmed' and t.decided_at > now() - interval '1 day' and t.decided_at >= s.events_at
$$;

-- Notice of unusual spending in the current hour, compared with the same hour of the week in the last four weeks.
-- Unusual: more than three times the highest of these hours, and at least USD 5 more. At most once a day (UTC), and not
-- in an account's first week. Row comparisons follow an index; comparing the hour alone would read all accounts.
create or replace function alert_unusual(p_account text, p_roles jsonb) returns void
language plpgsql set enable_seqscan = off set enable_sort = off set enable_bitmapscan = off as $$
declare
  v_hour timestamptz := date_trunc('hour', clock_timestamp(), 'UTC');
  v_now numeric;
  v_most numeric;
  v_mark text := 'unusual:' || to_char(v_hour at time zone 'UTC', 'YYYY-MM-DD');
begin
  if exists (select 1 from alert_mark m where m.account_id = p_account and m.mark = v_mark) or not exists (
      select 1 from usage_hour h where (h.account_id, h.hour) >= (p_account, '-infinity'::timestamptz)
        and (h.account_id, h.hour) < (p_account, v_hour - interval '7 days') order by h.account_id, h.hour limit 1) then
    return;
  end if;
  select coalesce(sum(h.charged_nano_usd), 0) into v_now from usage_hour h where h.account_id = p_account and h.hour = v_hour;
  select coalesce(max(x.charged), 0) into v_most from (
    select (select sum(h.charged_nano_usd) from usage_hour h where h.account_id = p_account and h.hour = v_hour - w * interval '7 days') as charged
    from generate_series(1, 4) w) x;
  if v_now > v_most * 3 and v_now >= v_most + 5000000000 then
    perform alert_tell(p_account, v_mark, 'spend.unusual', jsonb_build_object(
      'hour', to_char(v_hour at time zone 'UTC', 'YYYY-MM-DD"T"HH24:00:00"Z"'), 'spent', v_now::text, 'most', v_most::text), p_roles);
  end if;
end $$;

-- Notices of keys that expire within a week, for subscribed accounts; at most p_limit keys that have no notice yet.
create or replace function alerts_expiring(p_limit integer, p_roles jsonb) returns integer
language sql as $$
  with found as materialized (
    select k.account_id, k.id, k.last_four, k.expires_at, 'expires:' || k.id || ':' || extract(epoch from k.expires_at)::bigint as mark
    from api_key k join batch_notice_setting s on s.account_id = k.account_id and s.events ? 'key.expiring'
    where k.state = 'active' and k.replaced_by is null and k.expires_at > now() and k.expires_at < now() + interval '7 days'
      and not exists (select 1 from alert_mark m where m.account_id = k.account_id
        and m.mark = 'expires:' || k.id || ':' || extract(epoch from k.expires_at)::bigint)
    order by k.expires_at limit p_limit
  )
  select count(alert_tell(f.account_id, f.mark, 'key.expiring', jsonb_build_object('key_id', f.id, 'last_four', f.last_four,
    'expires_at', to_char(f.expires_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')), p_roles)::text)::integer from found f
$$;

-- Notices of a model's retirement on p_on to accounts that used the model in the last 30 days, subscribed or not; once
-- per p_days. Handles p_limit accounts after p_after; returns the id of the last account, null at the end.
create or replace function alerts_retiring(p_model text, p_on date, p_days integer, p_after text, p_limit integer, p_roles jsonb) returns text
language plpgsql set enable_seqscan = off set enable_sort = off set enable_bitmapscan = off as $$
declare
  v_account text;
  v_mark text := 'retires:' || p_model || ':' || p_on || ':' || p_days;
  v_seen integer := 0;
begin
  for v_account in select u.account_id from usage_total u where u.account_id > p_after order by u.account_id limit p_limit loop
    v_seen := v_seen + 1;
    if not exists (select 1 from alert_mark m where m.account_id = v_account and m.mark = v_mark)
        and exists (
          select 1 from unnest(array['ok', 'failed', 'left']) as c(class), lateral (
            select 1 from usage_hour h where (h.account_id, h.model, h.class, h.hour) >= (v_account, p_model, c.class, now() - interval '30 days')
              and (h.account_id, h.model, h.class, h.hour) < (v_account, p_model, c.class, 'infinity'::timestamptz)
            order by h.account_id, h.model, h.class, h.hour limit 1) used) then
      perform alert_tell(v_account, v_mark, 'model.retiring', jsonb_build_object('model', p_model, 'retires_on', p_on::text), p_roles, true);
    end if;
  end loop;
  return case when v_seen = p_limit then v_account end;
end $$;

-- Returns the account's subscribed events with p_added and without p_removed; the same value if nothing changes.
create or replace function alert_events(p_events jsonb, p_added jsonb, p_removed jsonb) returns jsonb
language sql immutable as $$
  select case when x.events @> p_events and p_events @> x.events then p_events else x.events end from (
    select coalesce(jsonb_agg(e.type order by e.type), '[]') as events from (
      select jsonb_array_elements_text(p_events || p_added) as type except select jsonb_array_elements_text(p_removed)
    ) e
  ) x
$$;
