-- States of instances, and the order of control entries. States are rows that are only added, so no function here waits
-- for a row lock. Sections that must not run concurrently take an advisory lock until the end of the statement. Lock
-- order: control log, then an epoch's state.

-- Appends an entry to the control log and notifies instances. The lock is held until commit, so numbers are in the
-- order of commits, and readers skip none. Transactions of several statements set tollgate.control_at_commit: a trigger
-- of control_pending then appends their entries at commit, so that their waits delay no other entry. Those calls return
-- 0 instead of a number.
create or replace function control_append(p_kind text, p_subject text, p_payload jsonb) returns bigint
language plpgsql as $$
declare
  v_seq bigint;
begin
  if current_setting('tollgate.control_at_commit', true) = 'on' then
    insert into control_pending (kind, subject, payload) values (p_kind, p_subject, p_payload);
    return 0;
  end if;
  perform pg_advisory_xact_lock(hashtextextended('control log', 0));
  select coalesce(max(seq), 0) + 1 into v_seq from control_log;
  insert into control_log (seq, kind, subject, payload) values (v_seq, p_kind, p_subject, p_payload);
  perform pg_notify('tollgate_control', v_seq::text);
  return v_seq;
end $$;

-- Start of the transaction that appended an entry (default: the current one), in microseconds since 1970. After a
-- failover, the new server may reuse a number, so number and time together identify an entry.
create or replace function control_at(p_at timestamptz default now()) returns bigint
language sql stable as $$
  select (extract(epoch from p_at) * 1000000)::bigint
$$;

-- Adds a row to an epoch's states if its current state is one of p_from. With p_beat, only if that is the newest row's
-- number. p_ttl_ms null: the lease is not renewed. Returns the new row's number, or null if none was added.
create or replace function instance_stand(p_id text, p_epoch integer, p_beat bigint, p_from text[], p_state text, p_ttl_ms integer, p_applied bigint)
returns bigint
language plpgsql as $$
declare
  b instance_beat;
begin
  perform pg_advisory_xact_lock(hashtextextended('standing ' || p_id || ' ' || p_epoch, 0));
  -- A separate statement after the lock, so that it sees what the previous holder of the lock committed.
  select * into b from instance_beat x where x.id = p_id and x.epoch = p_epoch order by x.beat desc limit 1;
  if not found or b.state <> all (p_from) or b.beat <> p_beat then
    return null;
  end if;
  insert into instance_beat (id, epoch, beat, state, ttl_ms, lease_until, applied_seq, started_at, ended_at)
    values (p_id, p_epoch, b.beat + 1, p_state, coalesce(p_ttl_ms, b.ttl_ms),
      case when p_ttl_ms is null then b.lease_until else clock_timestamp() + make_interval(secs => p_ttl_ms / 1000.0) end,
      greatest(b.applied_seq, p_applied), b.started_at, case when p_state = 'left' then clock_timestamp() end);
  if p_state in ('live', b.state) then
    -- Deletes the rows that the new row replaces. A later call deletes those that are locked now.
    delete from instance_beat x using (
        select o.beat from instance_beat o where o.id = p_id and o.epoch = p_epoch and o.beat <= b.beat for update skip locked
      ) old where x.id = p_id and x.epoch = p_epoch and x.beat = old.beat;
  end if;
  return b.beat + 1;
end $$;

-- Starts the next epoch of an instance, in state joining. p_after: highest epoch number that the caller has used, which
-- a server may have lost in a failover.
create or replace function instance_join(p_id text, p_ttl_ms integer, p_after integer default 0) returns integer
language plpgsql as $$
declare
  v_epoch integer;
begin
  perform pg_advisory_xact_lock(hashtextextended('instance ' || p_id, 0));
  insert into server_seen (mark, quiet) select server_mark(), true where not exists (select 1 from server_seen) on conflict do nothing;
  -- Ends an epoch of this instance that died while joining: it has no leases and no journal to replay.
  perform instance_stand(i.id, i.epoch, null, array['joining'], 'left', null, null) from instance_now i
    where i.id = p_id and i.state = 'joining' and i.lease_until < clock_timestamp();
  select greatest(max(x.epoch), p_after) + 1 into v_epoch from instance_beat x where x.id = p_id;
  insert into instance_beat (id, epoch, beat, state, ttl_ms, lease_until)
    values (p_id, v_epoch, 1, 'joining', p_ttl_ms, clock_timestamp() + make_interval(secs => p_ttl_ms / 1000.0));
  return v_epoch;
end $$;

-- Changes joining to live if no control entry followed p_applied. A shared lock on the log prevents new entries until
-- commit. Returns the newest entry's number: if it equals p_applied, the instance is live. Null: the epoch was fenced
-- off.
create or replace function instance_go_live(p_id text, p_epoch integer, p_applied bigint, p_ttl_ms integer) returns bigint
language plpgsql as $$
declare
  v_seq bigint;
begin
  perform pg_advisory_xact_lock_shared(hashtextextended('control log', 0));
  select coalesce(max(seq), 0) into v_seq from control_log;
  if v_seq = p_applied then
    if instance_stand(p_id, p_epoch, null, array['joining', 'live', 'silent'], 'live', p_ttl_ms, p_applied) is null then
      return null;
    end if;
  end if;
  return v_seq;
end $$;

-- Renews an epoch's lease. Returns the newest control entry's number and this server's position (server_place). Returns
-- no row if the epoch was fenced off. If it applied more entries than this log contains, another server had them: the
-- epoch is fenced off now.
create or replace function instance_renew(p_id text, p_epoch integer, p_applied bigint, p_ttl_ms integer) returns table (seq bigint, server text)
language plpgsql as $$
begin
  select coalesce(max(l.seq), 0) into seq from control_log l;
  if p_applied > seq then
    perform instance_stand(p_id, p_epoch, null, array['live', 'silent'], 'dead', null, null);
    return;
  end if;
  if instance_stand(p_id, p_epoch, null, array['live', 'silent'], 'live', p_ttl_ms, p_applied) is null then
    return;
  end if;
  -- Reads the number again after the renewal, so that entries appended during the renewal need not wait for the next
  -- heartbeat.
  select coalesce(max(l.seq), 0), server_place() into seq, server from control_log l;
  return next;
end $$;

-- Returns the live instances that have not applied entry p_seq. First fences off those that another instance has seen
-- silent for longer than their lease; for the others, the caller waits by its own clock. TG006: no entry has this
-- number and time, because the server that had it is lost.
create or replace function instance_lagging(p_seq bigint, p_at_micros bigint)
returns table (id text, epoch integer, beat bigint, ttl_ms integer, lease_until timestamptz)
language plpgsql as $$
begin
  if not exists (select 1 from control_log l where l.seq = p_seq and control_at(l.at) = p_at_micros) then
    raise exception 'the control log has no entry %: another server had it', p_seq using errcode = 'TG006';
  end if;
  -- In the order of instances and epochs, so that two concurrent calls do not deadlock.
  perform instance_stand(s.id, s.epoch, null, array['silent'], 'dead', null, null) from (
    select i.id, i.epoch from instance_now i where i.state = 'silent' and i.applied_seq < p_seq order by i.id, i.epoch) s;
  return query select i.id, i.epoch, i.beat, i.ttl_ms, i.lease_until from instance_now i
    where i.state in ('live', 'silent') and i.applied_seq < p_seq;
end $$;

-- Identity and position of this server: system identifier, timeline, and the position to which its log is flushed. A
-- promoted standby has another timeline; a restored snapshot has a lower position. System `?`: the role may not read
-- the identifier. Timeline `-`: the server is a standby. If the position cannot be read, the server's start replaces
-- the timeline, so that every restart looks like another server.
create or replace function server_place() returns text
language plpgsql as $$
declare
  v_system text := '?';
begin
  begin
    select c.system_identifier::text into v_system from pg_control_system() c;
  exception when insufficient_privilege or feature_not_supported then
    null;
  end;
  if pg_is_in_recovery() then
    return v_system || '/- 0';
  end if;
  return v_system || '/' || left(pg_walfile_name(pg_current_wal_lsn()), 8) || ' ' || (pg_current_wal_flush_lsn() - '0/0')::bigint;
exception when insufficient_privilege or feature_not_supported then
  return v_system || '/@' || control_at(pg_postmaster_start_time()) || ' 0';
end $$;

-- Label of this server: system identifier and timeline, without the position.
create or replace function server_mark() returns text
language sql as $$
  select split_part(server_place(), ' ', 1)
$$;

-- `fresh`: instances may still act on control entries of an earlier server; `ttl_ms`: for how long at most. At the
-- first server of a database, instance_join records that there was no earlier one.
create or replace function server_fresh() returns table (mark text, fresh boolean, ttl_ms integer)
language plpgsql as $$
begin
  mark := server_mark();
  fresh := not exists (select 1 from server_seen s where s.mark = server_fresh.mark and s.quiet);
  select coalesce(max(i.ttl_ms), 0) into ttl_ms from instance_now i where i.state <> 'left';
  return next;
end $$;

-- Records that this server's history went back, so instances that it does not know may act on lost control entries.
create or replace function server_went_back() returns void
language plpgsql as $$
begin
  insert into server_seen (mark, quiet) values (server_mark(), false) on conflict do nothing;
  delete from server_seen s where s.mark = server_mark() and s.quiet;
end $$;
