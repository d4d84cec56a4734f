-- Changes that a database server lost in a failover, but that instances know from the previous server's control log.
-- Lock order as in keys.sql.

-- Returns the fields in which the key or project p_known is stricter than p_now, with the values of p_known.
create or replace function limited_closer(p_now jsonb, p_known jsonb) returns jsonb
language plpgsql immutable as $$
declare
  v_patch jsonb := '{}';
  f text;
begin
  foreach f in array array['capNanoUsd', 'expiresAtMs', 'requestsPerMinute', 'concurrencyMax', 'tokensPerMinute'] loop
    if p_known ->> f is not null and (p_now ->> f is null or (p_known ->> f)::bigint < (p_now ->> f)::bigint) then
      v_patch := v_patch || jsonb_build_object(f, p_known -> f);
    end if;
  end loop;
  if v_patch ? 'capNanoUsd' then
    v_patch := v_patch || jsonb_build_object('capPeriod', p_known -> 'capPeriod');
  end if;
  if jsonb_typeof(p_known -> 'models') = 'array' and (jsonb_typeof(p_now -> 'models') <> 'array' or not p_known -> 'models' @> (p_now -> 'models')) then
    v_patch := v_patch || jsonb_build_object('models', p_known -> 'models');
  end if;
  return v_patch;
end $$;

-- Repeats a revocation that this server lacks. Returns `redone`; `lost` if a difference remains; null if nothing
-- differs. p_newer: this server has a later change of the subject, so only a revocation is repeated.
create or replace function act_redo(p_kind text, p_subject text, p_known jsonb, p_newer boolean) returns text
language plpgsql as $$
declare
  v_now jsonb;
  v_patch jsonb;
  v_redone boolean := false;
begin
  if p_kind = 'key' then
    select key_fields(k) into v_now from api_key k where k.id = p_subject for update;
    if v_now ->> 'state' = 'active' and p_known ->> 'state' = 'revoked' then
      update api_key k set state = 'revoked', revoked_at = clock_timestamp() where k.id = p_subject returning key_fields(k) into v_now;
      perform control_append('key', p_subject, v_now);
      return 'redone';
    end if;
  elsif p_kind = 'account' then
    select account_fields(a) into v_now from account a where a.id = p_subject for update;
    if v_now ->> 'state' = 'active' and p_known ->> 'state' = 'suspended' and not p_newer then
      perform account_update(p_subject, '{"state": "suspended"}', null);
      return 'redone';
    end if;
  elsif p_kind = 'project' then
    select project_fields(p) into v_now from project p where p.id = p_subject for update;
    if v_now ->> 'state' = 'active' and p_known ->> 'state' = 'archived' and not p_newer then
      perform project_update(p_subject, null, '{"state": "archived"}', null);
      return 'redone';
    end if;
  else
    -- An entry about a booking, which cannot be repeated. Cap budgets need nothing: their key or project restores them.
    return case when exists (select 1 from account a where a.id = p_subject) then 'lost' end;
  end if;
  if v_now is null then
    return 'lost';
  end if;
  if v_now ->> 'state' = 'active' and p_kind <> 'account' and not p_newer then
    v_patch := limited_closer(v_now, p_known);
    if v_patch <> '{}' then
      v_now := v_now || v_patch;
      v_redone := true;
      if p_kind = 'key' then
        perform key_update(p_subject, null, v_patch, null);
      else
        perform project_update(p_subject, null, v_patch, null);
      end if;
    end if;
  end if;
  return case when v_now <> p_known then 'lost' when v_redone then 'redone' end;
end $$;

-- Records an entry of the previous server's log, and repeats it if it revoked a right. Returns the outcome; null if
-- nothing was missing, or if another instance recorded it before. This log may contain the entry even if the caller's
-- copy of the log does not.
create or replace function act_lost(p_seq bigint, p_at_micros bigint, p_kind text, p_subject text, p_payload jsonb) returns text
language plpgsql as $$
declare
  v_at timestamptz := 'epoch'::timestamptz + p_at_micros * interval '1 microsecond';
  v_outcome text;
begin
  perform pg_advisory_xact_lock(hashtextextended('lost act ' || p_kind || ' ' || p_subject, 0));
  if exists (select 1 from lost_act l where l.seq = p_seq and l.at = v_at)
      or exists (select 1 from control_log l where l.seq = p_seq and l.at = v_at) then
    return null;
  end if;
  v_outcome := act_redo(p_kind, p_subject, p_payload,
    exists (select 1 from control_log l where l.kind = p_kind and l.subject = p_subject and l.at > v_at));
  if v_outcome is not null then
    insert into lost_act (seq, at, kind, subject, outcome) values (p_seq, v_at, p_kind, p_subject, v_outcome);
  end if;
  return v_outcome;
end $$;
