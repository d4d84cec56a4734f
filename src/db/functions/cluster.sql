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
