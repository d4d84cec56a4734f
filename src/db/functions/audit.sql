-- Writes audit entries in the same statement as the actions, so that a crash leaves both or neither. p_acts: entries as
-- built by `auditNote` in `ops/audit.ts`; null: none. p_more: details that are known only in the statement.
create or replace function audit_note(p_acts jsonb, p_subject text, p_account text, p_more jsonb default '{}') returns void
language sql as $$
  insert into audit_event (id, actor, action, subject, account_id, ip, detail)
    select a ->> 'id', a ->> 'actor', a ->> 'action', p_subject, p_account, a ->> 'ip', coalesce(a -> 'detail', '{}') || p_more
    from jsonb_array_elements(p_acts) a
$$;

-- True if the operator opened the read-only view of the account within the last hour. Reads the audit log, so that
-- every view is sure to have an audit entry.
create or replace function audit_viewing(p_operator text, p_account text) returns boolean
language sql stable as $$
  select exists (select 1 from audit_event e where e.subject = p_account and e.actor = p_operator and e.action = 'account.view'
    and e.at > now() - interval '1 hour')
$$;
