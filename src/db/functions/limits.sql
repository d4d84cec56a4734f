-- Parts of keys' limits that instances hold (shares). Each instance admits within its share, so that all instances
-- together stay within the limit. Lock order: the keys' advisory locks in the order of their hashes.

-- Records the shares that an instance has, and enlarges them if the limit has room. p_asks: [{key, kind, limit, have,
-- need, seq}]. `have`: share in the instance's memory; `need`: share wanted, or at most `have` to request nothing.
-- p_former: earlier epochs of this process, whose shares now belong to this one. Returns the new share and what is
-- free; if it is less than needed, other instances are notified to return unused parts.
-- - An ended epoch gets nothing, because its process may have repeated the request under its next epoch.
-- - Skipped: requests of an ended epoch for more than was recorded, and requests older than a recorded one. Also those
--   whose row is locked, because waiting would delay the whole statement.
-- - A lost instance keeps its share of requests or tokens a minute for two minutes, as long as its requests count. Its
--   share of concurrent requests is free at once.
-- - An instance is lost if another one has waited for its lease by its own clock. It is also lost if its lease ends
--   further in the future than any lease can.
create or replace function limit_hold(p_instance text, p_epoch integer, p_former integer[], p_asks json)
returns table (key text, kind text, share integer, free integer)
language plpgsql set enable_seqscan = off as $$
declare
  r record;
  v_live integer;
  v_own integer[] := p_former || p_epoch;
  v_lives boolean;
  v_seq bigint;
  v_amount bigint;
  v_rows bigint;
  v_others bigint;
  v_rest bigint;
begin
  select greatest(1, count(*) filter (where i.state = 'live'))::integer, coalesce(bool_or(i.id = p_instance and i.epoch = p_epoch), false)
    into v_live, v_lives from instance_now i where i.state in ('joining', 'live', 'silent');
  for r in
    select x.*, hashtextextended(x.key, 2) as hash
    from json_to_recordset(p_asks) as x(key text, kind text, "limit" integer, have integer, need integer, seq bigint)
    order by hash, x.kind, x.seq
  loop
    perform pg_advisory_xact_lock(r.hash);
    select max(s.seq), count(*), coalesce(max(s.amount), 0) into v_seq, v_rows, v_amount from key_share s
      where s.key_id = r.key and s.kind = r.kind and s.instance_id = p_instance and s.epoch = any (v_own);
    continue when v_seq > r.seq;
    continue when not v_lives and (r.need > r.have or r.have > v_amount);
    continue when v_rows > (select count(*) from (
      select 1 from key_share s
        where s.key_id = r.key and s.kind = r.kind and s.instance_id = p_instance and s.epoch = any (v_own)
        for update skip locked) nobodys);
    select coalesce(sum(s.amount), 0) into v_others
      from key_share s left join instance_now i on i.id = s.instance_id and i.epoch = s.epoch
      where s.key_id = r.key and s.kind = r.kind
        and not (s.instance_id = p_instance and s.epoch = any (v_own))
        and (i.state = 'live'
          or s.kind <> 'running' and greatest(i.lease_until, i.ended_at) between clock_timestamp() - interval '2 minutes'
            and clock_timestamp() + make_interval(secs => i.ttl_ms / 1000.0));
    v_rest := greatest(0, r."limit" - v_others);
    share := r.have;
    if r.need > r.have then
      if v_rest >= r.need then
        -- Like a grant of credit, a new share is at most half of the free limit divided by the number of instances that
        -- may request it.
        share := case when v_live = 1 then v_rest
          else least(v_rest, greatest(r.need, r.have + (v_rest - r.have + 2 * v_live - 1) / (2 * v_live))) end;
      else
        perform pg_notify('tollgate_limits', r.key);
      end if;
    end if;
    delete from key_share s where s.key_id = r.key and s.kind = r.kind and s.instance_id = p_instance
      and s.epoch = any (p_former);
    -- A row with an empty share is kept, because it stores the number (seq) of the last request.
    insert into key_share as s (key_id, kind, instance_id, epoch, amount, seq) values (r.key, r.kind, p_instance, p_epoch, share, r.seq)
      on conflict on constraint key_share_key_id_kind_instance_id_epoch_pk do update set amount = excluded.amount, seq = excluded.seq, at = clock_timestamp();
    key := r.key;
    kind := r.kind;
    free := greatest(0, v_rest - share);
    return next;
  end loop;
end $$;
