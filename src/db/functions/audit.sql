-- Writes audit events in the statement that does the acts, so that a crash at any moment leaves both or neither.
-- p_acts: as `noted` in `ops/audit.ts` makes them, each of an `AuditAction`; null for acts without an audit event.
-- p_more: values that only the statement knows.
create or replace function audit_note(p_acts jsonb, p_subject text, p_account text, p_more jsonb default '{}') returns void
language sql as $$
  insert into audit_event (id, actor, action, subject, account_id, ip, detail)
    select a ->> 'id', a ->> 'actor', a ->> 'action', p_subject, p_account, a ->> 'ip', coalesce(a -> 'detail', '{}') || p_more
    from jsonb_array_elements(p_acts) a
$$;
