-- Files of accounts. A file's parts are recorded in order, and their bytes are counted in the rows of file_space. Lock
-- order: the file, the account's space, the space of all accounts (whose account id is empty).

-- A file as JSON for `file-books.ts`. Times are Unix milliseconds.
create or replace function file_fields(f stored_file) returns jsonb
language sql stable as $$
  select jsonb_build_object('id', f.id, 'accountId', f.account_id, 'keyId', f.key_id, 'purpose', f.purpose, 'filename', f.filename,
    'store', f.store, 'bytes', f.bytes, 'parts', f.parts, 'createdAtMs', floor(extract(epoch from f.created_at) * 1000)::bigint,
    'expiresAtMs', floor(extract(epoch from f.expires_at) * 1000)::bigint)
$$;

-- True if space limits apply to files of this purpose. A batch's output is never refused, because it exists nowhere
-- else; it still counts towards the account's space.
create or replace function file_is_bounded(p_purpose text) returns boolean
language sql immutable as $$ select p_purpose <> 'batch_output' $$;

-- Creates an empty file; false if the account has too many. A repeated call finds the file. The file expires by this
-- server's clock, because gateways' clocks may differ by a day.
create or replace function file_begin(p_id text, p_account text, p_key text, p_purpose text, p_filename text, p_store text,
  p_lifetime_ms double precision, p_files_max integer) returns boolean
language plpgsql as $$
begin
  insert into stored_file (id, account_id, key_id, purpose, filename, state, store, created_at, expires_at)
    values (p_id, p_account, p_key, p_purpose, p_filename, 'writing', p_store, now(), now() + p_lifetime_ms * interval '1 millisecond')
    on conflict (id) do nothing;
  if not found then
    return true;
  end if;
  insert into file_space (account_id) values (p_account), ('') on conflict (account_id) do nothing;
  update file_space set files = files + 1 where account_id = p_account and (files < p_files_max or not file_is_bounded(p_purpose));
  if not found then
    delete from stored_file where id = p_id;
    return false;
  end if;
  update file_space set files = files + 1 where account_id = '';
  return true;
end $$;

-- Appends a blob as the next part of a file. Returns:
-- - 'sealed': the part was recorded, now or by an earlier call.
-- - 'taken': another writer recorded this part, or the number is not the next.
-- - 'gone': the file is no longer being written.
-- - 'account_full': the account has reached its limit.
-- - 'full': no space is left for all accounts, or for this one. An account with more than 1/1024 of all space may hold
--   at most half of the free space, so that few accounts cannot fill it.
create or replace function file_seal(p_id text, p_number integer, p_bytes integer, p_blob text, p_account_bytes_max bigint, p_all_bytes_max bigint)
returns text
language plpgsql as $$
declare
  f stored_file;
  own bigint;
  free bigint;
begin
  select * into f from stored_file where id = p_id for update;
  if not found or f.state <> 'writing' then
    return 'gone';
  end if;
  if p_number <> f.parts then
    return case when exists (select 1 from stored_file_part where file_id = p_id and number = p_number and blob = p_blob)
      then 'sealed' else 'taken' end;
  end if;
  select bytes + p_bytes into own from file_space where account_id = f.account_id for update;
  if p_bytes > 0 and file_is_bounded(f.purpose) then
    if own > p_account_bytes_max then
      return 'account_full';
    end if;
    select p_all_bytes_max - bytes - p_bytes into free from file_space where account_id = '';
    if own > greatest(free / 2, p_all_bytes_max / 1024) then
      return 'full';
    end if;
  end if;
  update file_space set bytes = bytes + p_bytes where account_id = ''
    and (bytes + p_bytes <= p_all_bytes_max or not file_is_bounded(f.purpose));
  if not found then
    return 'full';
  end if;
  update file_space set bytes = bytes + p_bytes where account_id = f.account_id;
  insert into stored_file_part (file_id, number, start, bytes, blob) values (p_id, p_number, f.bytes, p_bytes, p_blob);
  update stored_file set parts = parts + 1, bytes = bytes + p_bytes where id = p_id;
  return 'sealed';
end $$;

-- Deletes the row of a file whose blobs were deleted before. False if there was none.
create or replace function file_forget(p_id text) returns boolean
language plpgsql as $$
declare
  f stored_file;
begin
  delete from stored_file where id = p_id returning * into f;
  if not found then
    return false;
  end if;
  delete from stored_file_part where file_id = p_id;
  update file_space set files = files - 1, bytes = bytes - f.bytes where account_id = f.account_id;
  update file_space set files = files - 1, bytes = bytes - f.bytes where account_id = '';
  return true;
end $$;
