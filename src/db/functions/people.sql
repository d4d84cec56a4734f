-- What people are given of which there are only so many. Who has them is locked first and until commit, so that of two that are
-- made at once the second one sees the first.

-- Stores a passkey. False, and nothing was stored: he has p_most, or it is somebody's.
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

-- Whether fewer than p_most invitations to an account are open.
create or replace function invitation_room(p_account text, p_most integer) returns boolean
language plpgsql as $$
begin
  perform 1 from account a where a.id = p_account for no key update;
  return (select count(*) from invitation i where i.account_id = p_account) < p_most;
end $$;
