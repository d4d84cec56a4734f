-- Records an expected payment; false if the id exists. p_most: limit of the account's pending payments; null: none.
-- TG002: no such account. TG004: the limit is reached.
create or replace function topup_expect(p_id text, p_account text, p_amount bigint, p_method text, p_reference text, p_most integer) returns boolean
language plpgsql as $$
begin
  -- Serialized per account, so that two concurrent calls do not both find room.
  perform 1 from account a where a.id = p_account for no key update;
  if not found then
    raise exception 'There is no account {id}.' using errcode = 'TG002', detail = json_build_object('id', p_account);
  end if;
  if exists (select 1 from top_up t where t.id = p_id and t.account_id = p_account) then
    return false;
  end if;
  if (select count(*) from top_up t where t.account_id = p_account and t.state = 'pending') >= p_most then
    raise exception '{count} top-ups are already pending. Cancel those that you will not pay.' using errcode = 'TG004', detail = json_build_object('count', p_most);
  end if;
  insert into top_up (id, account_id, amount_nano_usd, method, reference) values (p_id, p_account, p_amount, p_method, p_reference);
  return true;
end $$;

-- Confirms a pending top-up: its state, the credit and the account's access change in one transaction. Returns the
-- number of the last control entry; null if it was confirmed before. TG002: no such top-up. TG004: it was rejected,
-- refunded or disputed, or the credit would exceed the limit of ledger_book.
create or replace function topup_confirm(p_id text, p_actor text, p_entry_id text) returns bigint
language plpgsql as $$
declare
  t top_up;
  a account;
begin
  select * into t from top_up where id = p_id for update;
  if not found then
    raise exception 'There is no top-up {id}.' using errcode = 'TG002', detail = json_build_object('id', p_id);
  end if;
  if t.state = 'confirmed' then
    return null;
  end if;
  if t.state <> 'pending' then
    raise exception 'The top-up is {state}: it cannot be confirmed.' using errcode = 'TG004', detail = json_build_object('state', t.state);
  end if;
  update top_up set state = 'confirmed', decided_at = clock_timestamp(), decided_by = p_actor where id = p_id;
  update account set topped_up = topped_up or t.amount_nano_usd >= 100000000000 where id = t.account_id returning * into a;
  if ledger_book(p_entry_id, t.account_id, 'top_up', t.amount_nano_usd, 'topup:' || t.id, p_actor, t.reference, false) is null then
    raise exception 'top-up % is pending and yet booked', p_id;
  end if;
  return control_append('account', t.account_id, account_fields(a));
end $$;
