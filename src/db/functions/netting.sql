-- What version 0.1 gave back after a crash, taken off what it had charged. It charged the bound and booked a credit note,
-- `recovered:<request>`, so that what an account and a key had spent stayed too high and a cap went on counting it. Here
-- the charge itself becomes what the request cost in the end, as this version would have charged it at once; the note
-- stays, and an entry `netted:<request>` of the same amount stands against it.

-- Nets one note, once. Returns
-- netted: it is. later: ask again, the request is not in the books yet or its sums are being made.
-- kept: it stays as it is, because the request or its lease is not in the books any more, or was charged less than that, or
-- on a day that is sealed.
-- Locks: the row of the sums, that of the seals, budgets by id, the lease, then the log of control.
create or replace function ledger_net(p_entry text) returns text
language plpgsql set enable_seqscan = off as $$
declare
  n ledger_entry;
  e usage_event;
  c usage_cursor;
  v_request text;
begin
  -- Nobody folds meanwhile: a row that changes is in the sums already, or in none.
  insert into usage_cursor (id) values (1) on conflict do nothing;
  select * into c from usage_cursor where id = 1 for update;
  perform 1 from sealing where id = 1 for share;
  select * into n from ledger_entry where id = p_entry and kind = 'credit_note' and not netted for update;
  if not found then
    return 'netted';
  end if;
  v_request := substr(n.source_ref, length('recovered:') + 1);
  if n.source_ref ~ '^recovered:[0-9a-f-]{36}$' then
    select * into e from usage_event u where u.request_id = v_request::uuid and u.account_id = n.account_id;
  end if;
  if e.request_id is null and n.created_at > clock_timestamp() - interval '1 day' then
    return 'later';
  end if;
  if e.request_id is null or n.amount_nano_usd <= 0 or e.charged_nano_usd < n.amount_nano_usd
      or e.settled_at < (select x.closed_until from sealing x where x.id = 1) or (
      select count(*) from lease l where l.budget_id in (e.account_id, e.key_id) and l.instance_id = e.instance_id and l.epoch = e.epoch
        and l.settled_nano_usd >= n.amount_nano_usd) < 2 then
    update ledger_entry set netted = true where id = p_entry;
    return 'kept';
  end if;
  -- Sums that were never made, or must be made anew, take it as it is by then. What is younger than two minutes may be
  -- read again by the next fold, which would count it twice.
  if c.horizon is not null and c.horizon <= pg_current_xact_id()::text::bigint then
    if e.settled_at > c.folded_at - interval '2 minutes' then
      return 'later';
    end if;
    update usage_hour h set charged_nano_usd = h.charged_nano_usd - n.amount_nano_usd
      where h.account_id = e.account_id and h.hour = date_trunc('hour', e.admitted_at, 'UTC') and h.key_id = e.key_id
        and h.model = e.model and h.class = usage_class(e.ending);
  end if;
  perform 1 from budget g where g.id in (e.account_id, e.key_id) order by g.id for update;
  update usage_event set charged_nano_usd = charged_nano_usd - n.amount_nano_usd where request_id = e.request_id;
  -- As if so much less had been granted, which a late settlement does the other way round.
  update lease l set granted_nano_usd = l.granted_nano_usd - n.amount_nano_usd, settled_nano_usd = l.settled_nano_usd - n.amount_nano_usd
    where l.budget_id in (e.account_id, e.key_id) and l.instance_id = e.instance_id and l.epoch = e.epoch;
  insert into lease_op (id, budget_id, instance_id, epoch, kind, amount_nano_usd)
    select gen_random_uuid(), b.id, e.instance_id, e.epoch, 'grant', -n.amount_nano_usd from unnest(array[e.account_id, e.key_id]) as b(id);
  update budget g set drawn_nano_usd = g.drawn_nano_usd - n.amount_nano_usd,
    limit_nano_usd = g.limit_nano_usd - case when g.id = e.account_id then n.amount_nano_usd else 0 end
    where g.id in (e.account_id, e.key_id);
  insert into ledger_entry (id, account_id, kind, amount_nano_usd, source_ref, actor, note, netted)
    values (p_entry || '-netted', n.account_id, 'credit_note', -n.amount_nano_usd, 'netted:' || v_request, 'recovery',
      'The request itself is charged less instead.', true);
  update ledger_entry set netted = true where id = p_entry;
  -- The key's cap has room again, which instances that found it used up hear of.
  perform control_append('budget', e.key_id, jsonb_build_object('lowered', false));
  return 'netted';
end $$;
