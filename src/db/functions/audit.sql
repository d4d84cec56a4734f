-- Writes down acts in the statement that does them, so that whoever dies at whatever moment leaves both or none. p_acts: as
-- `noted` in `ops/audit.ts` makes them, each of an `AuditAction`; null for what nobody is to answer for. p_more: what only the statement knows.
create or replace function audit_note(p_acts jsonb, p_subject text, p_account text, p_more jsonb default '{}') returns void
language sql as $$
  insert into audit_event (id, actor, action, subject, account_id, ip, detail)
    select a ->> 'id', a ->> 'actor', a ->> 'action', p_subject, p_account, a ->> 'ip', coalesce(a -> 'detail', '{}') || p_more
    from jsonb_array_elements(p_acts) a
$$;
