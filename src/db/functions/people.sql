-- Objects of which a person may have a limited number. Each function locks the owner's row first, so that concurrent
-- calls count each other's objects.

-- Stores a passkey. False, and nothing is stored, if the person already has p_most passkeys or the passkey exists.
create or replace function passkey_add(p_id text, p_user text, p_name text, p_public_key text, p_counter bigint, p_most integer) returns boolean
language plpgsql as $$
begin
  perform 1 from console_user u where u.id = p_user for no key update;
  if (select count(*) from passkey k where k.user_id = p_user) >= p_most then
    return false;
  end if;
  insert into passkey (id, user_id, name, public_key, counter) values (p_id, p_user, p_name, p_public_key, p_counter) on conflict do nothing;
  return found;
end $$;

-- True if the account has fewer than p_most open invitations. Invitations to p_email do not count, because the new one
-- replaces them.
create or replace function invitation_room(p_account text, p_email text, p_most integer) returns boolean
language plpgsql as $$
begin
  perform 1 from account a where a.id = p_account for no key update;
  return (select count(*) from invitation i where i.account_id = p_account and i.email <> p_email) < p_most;
end $$;

-- Makes a person an operator. Deletes earlier sessions in the same statement, so that none of them gets the role.
-- ready: the person can already sign in. Otherwise a stranger may have signed up with the address: that password is
-- deleted, and the token of p_identifier lets the person set a new one, once. p_acts: see audit_note.
create or replace function operator_create(p_id text, p_name text, p_email text, p_token_id text, p_identifier text, p_hours integer,
  p_acts jsonb, out made_id text, out ready boolean)
language plpgsql as $$
begin
  insert into console_user (id, name, email, email_verified) values (p_id, p_name, p_email, true) on conflict (email) do nothing;
  -- Locks the person's row: a concurrent sign-in waits for the lock, or its session is deleted below.
  select u.id into made_id from console_user u where u.email = p_email for update;
  ready := exists (select 1 from console_user u join auth_account a on a.user_id = u.id and a.provider_id = 'credential'
    where u.id = made_id and u.email_verified);
  delete from session s where s.user_id = made_id;
  if not ready then
    delete from auth_account a where a.user_id = made_id;
    delete from two_factor f where f.user_id = made_id;
    insert into verification (id, identifier, value, expires_at)
      values (p_token_id, p_identifier, made_id, clock_timestamp() + make_interval(hours => p_hours));
  end if;
  update console_user u set operator = true, email_verified = true, two_factor_enabled = u.two_factor_enabled and ready,
    updated_at = clock_timestamp() where u.id = made_id;
  perform audit_note(p_acts, made_id, null);
end $$;

-- Resets a password with the token of p_identifier, from a mailed link; all or nothing. Ends old passkeys, then old
-- sessions, so that no session starts with a passkey in between. Null, and nothing is done, if the link is unknown or
-- expired by p_at (milliseconds, of the clock that dated the link).
create or replace function password_reset(p_identifier text, p_credential_id text, p_password text, p_at double precision) returns text
language plpgsql as $$
declare
  v_user text;
begin
  delete from verification v using console_user u
    where v.identifier = p_identifier and v.expires_at > to_timestamp(p_at / 1000.0) and u.id = v.value returning u.id into v_user;
  if v_user is null then
    return null;
  end if;
  perform 1 from console_user u where u.id = v_user for no key update;
  update auth_account a set password = p_password, updated_at = clock_timestamp() where a.user_id = v_user and a.provider_id = 'credential';
  if not found then
    insert into auth_account (id, account_id, provider_id, user_id, password)
      values (p_credential_id, v_user, 'credential', v_user, p_password);
  end if;
  delete from passkey k where k.user_id = v_user;
  delete from session s where s.user_id = v_user;
  delete from verification v where v.value = v_user;
  return v_user;
end $$;
