import { readFileSync } from "node:fs";
import { join } from "node:path";
import postgres from "postgres";
import { FUNCTION_SET } from "../../src/db/function-set.ts";
import { testPostgres, uniqueName } from "../support/postgres.ts";

export type SqlSchema = Awaited<ReturnType<typeof createSqlSchema>>;

/** Tables that the mirror follows. `sim.note` records each row that a committed statement has changed. */
export const FOLLOWED_TABLES = [
	"budget",
	"lease",
	"usage_event",
	"reservation",
	"ledger_entry",
	"instance_beat",
	"control_log",
	"recall",
];

/**
 * Functions are found by the connection's search_path, so functions in this schema replace the server's clock, identity
 * and announcements. Sequences store the settings, because all sessions see their values at once. `sim.fuse`: number of
 * rows that this session's statement may still change before it is cancelled as by `pg_cancel_backend`.
 */
const SCHEMA = `
create schema sim;
create sequence sim.clock minvalue 0;
create sequence sim.timeline;
create sequence sim.position minvalue 0;
create schema copy;
create function sim.clock_timestamp() returns timestamptz language sql volatile as
	$$ select to_timestamp(last_value / 1000000.0) from sim.clock $$;
create function sim.now() returns timestamptz language sql volatile as $$ select sim.clock_timestamp() $$;
create function sim.server_place() returns text language sql volatile as $$ select 'simulated/' || t.last_value || ' ' || p.last_value from sim.timeline t, sim.position p $$;
create table sim.change (id bigserial primary key, what text not null, gone boolean not null, row jsonb not null);
create function sim.pg_notify(p_channel text, p_payload text) returns void language sql as
	$$ insert into sim.change (what, gone, row) values ('notify', false, jsonb_build_object('channel', p_channel, 'payload', p_payload)) $$;
create function sim.note() returns trigger language plpgsql as $$
declare
  v_fuse integer := nullif(current_setting('sim.fuse', true), '')::integer;
begin
  if v_fuse is not null then
    if v_fuse = 0 then
      raise exception 'canceling statement due to user request' using errcode = '57014';
    end if;
    perform set_config('sim.fuse', (v_fuse - 1)::text, false);
  end if;
  insert into sim.change (what, gone, row) values (tg_table_name, tg_op = 'DELETE', to_jsonb(case when tg_op = 'DELETE' then old else new end));
  return null;
end $$;
do $$
declare
  c record;
begin
  for c in select table_name, column_name from information_schema.columns
      where table_schema = 'public' and column_default in ('now()', 'clock_timestamp()') loop
    execute format('alter table public.%I alter column %I set default sim.clock_timestamp()', c.table_name, c.column_name);
  end loop;
  for c in select unnest(array[${FOLLOWED_TABLES.map((name) => `'${name}'`).join(", ")}]) as name loop
    execute format('create trigger zz_sim_note after insert or update or delete on public.%I for each row execute function sim.note()', c.name);
  end loop;
end $$;
`;

/** A changed text for one of the product's function files. */
export interface ChangedFunctions {
	/** Path of the file below `src/db/functions/`. */
	readonly file: string;
	change(text: string): string;
}

/** Creates a database with the real tables and functions, whose time and identity the simulation sets. */
export async function createSqlSchema(changed?: ChangedFunctions) {
	const server = await testPostgres();
	const name = uniqueName("test_sim");
	const asAdmin = async (statement: string) => {
		const admin = postgres(server.adminUrl, { max: 1, onnotice: () => {} });
		await admin.unsafe(statement).finally(() => admin.end());
	};
	await asAdmin(`create database ${name} template ${server.template}`);
	/** Opens a client with one connection and the simulation's schema first in its search path. */
	const connect = (label: string) =>
		postgres(server.urlOf(name), {
			max: 1,
			fetch_types: false,
			onnotice: () => {},
			connection: {
				application_name: `sim ${label}`,
				search_path: `sim, ${FUNCTION_SET}, public, pg_catalog`,
				statement_timeout: 60_000,
			},
		});
	const setUp = connect("set-up");
	try {
		await setUp.unsafe(SCHEMA);
		if (changed) {
			const text = readFileSync(join(import.meta.dir, "../../src/db/functions", changed.file), "utf8");
			await setUp.unsafe(`set search_path = ${FUNCTION_SET}, public; ${changed.change(text)}`);
		}
	} finally {
		await setUp.end();
	}
	return { connect, drop: () => asAdmin(`drop database if exists ${name} with (force)`) };
}
