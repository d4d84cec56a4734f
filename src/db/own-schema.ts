import type postgres from "postgres";
import { assert } from "../base/assert.ts";
import { Fault } from "../base/fault.ts";

interface Place {
	readonly database: string;
	readonly role: string;
	/** Where tables are made; null where no schema of the search_path is there. */
	readonly schema: string | null;
	readonly mayMake: boolean | null;
	readonly readOnly: string;
	readonly standby: boolean;
	readonly encoding: string;
}

/** A Fault that says what to do, unless this session may write what a start writes. */
export async function checkMayWrite(client: postgres.Sql): Promise<void> {
	const { database, role, standby, readOnly, encoding } = await look(client);
	if (standby) throw refused("The database is a standby, which takes no writes: point DATABASE_URL at the primary.");
	if (readOnly === "on")
		throw refused(
			`Transactions are read-only: \`alter role "${role}" in database "${database}" set default_transaction_read_only = off\`.`,
		);
	if (encoding !== "UTF8") throw refused(`The database's encoding is ${encoding}: make it anew with encoding UTF8.`);
}

/** The same, unless it may make tables. */
export async function checkMayMakeTables(client: postgres.Sql): Promise<void> {
	const { database, role, schema, mayMake } = await look(client);
	if (schema === null)
		throw refused(
			`No schema of the search_path is there, or may be used: make one, or \`alter role "${role}" in database "${database}" set search_path = public\`.`,
		);
	if (mayMake !== true)
		throw refused(
			`The schema must be brought up to date, and this role may not: \`grant create on schema "${schema}" to "${role}"\`, or have its owner run \`tollgate migrate\`.`,
		);
}

/**
 * The schema of the path in which tables of ours lie, whoever may read them; undefined where there are none. A Fault if this role
 * may not: a schema of its own before theirs (`"$user"`) would get a second set, which is empty.
 */
export async function findOwnSchema(client: postgres.Sql): Promise<string | undefined> {
	const [found] = await client<{ schema: string; mayRead: boolean; role: string }[]>`
		select nspname as schema, has_table_privilege(c.oid, 'SELECT') as "mayRead", current_user as role
		from pg_class c join pg_namespace n on n.oid = c.relnamespace
		where relname = 'schema_migration' and nspname = any (current_schemas(false)) and (
			exists (select from pg_attribute where attrelid = c.oid and attname = 'breaking')
			-- Version 0.1 made it without, and others have tables of that name.
			or exists (select from pg_class other where other.relnamespace = n.oid and other.relname = 'usage_event'))
		order by array_position(current_schemas(false), nspname) limit 1`;
	if (found?.mayRead === false)
		throw refused(
			`The tables in the schema "${found.schema}" are another role's: \`grant all on all tables in schema "${found.schema}" to "${found.role}"\` and the same on all sequences; or, for other tables than those, set a search_path without that schema.`,
		);
	return found?.schema;
}

/** Tables, views and sequences beside those of ours, of the same owner, that this role may not use in full. */
export async function findUnusable(client: postgres.Sql): Promise<readonly string[]> {
	const unusable = await client<{ name: string }[]>`
		select c.relname as name from pg_class ours join pg_class c on c.relnamespace = ours.relnamespace and c.relowner = ours.relowner
		where ours.oid = to_regclass('schema_migration') and case c.relkind
			when 'S' then not has_sequence_privilege(c.oid, 'USAGE')
			when 'r' then not (has_table_privilege(c.oid, 'SELECT') and has_table_privilege(c.oid, 'INSERT')
				and has_table_privilege(c.oid, 'UPDATE') and has_table_privilege(c.oid, 'DELETE'))
			when 'v' then not (has_table_privilege(c.oid, 'SELECT') and has_table_privilege(c.oid, 'UPDATE'))
			else false end
		order by c.relname`;
	return unusable.map(({ name }) => name);
}

/** Tables are made beside those that are there, though a schema that came later is before them on the path. */
export async function makeTablesIn(client: postgres.Sql, schema: string): Promise<void> {
	await client`
		select set_config('search_path', concat_ws(', ', quote_ident(${schema}), nullif(current_setting('search_path'), '')), false)`;
}

async function look(client: postgres.Sql): Promise<Place> {
	const [place] = await client<Place[]>`
		select current_database() as database, current_user as role, current_schema() as schema,
			has_schema_privilege(current_schema(), 'CREATE') as "mayMake", pg_is_in_recovery() as standby,
			current_setting('transaction_read_only') as "readOnly", current_setting('server_encoding') as encoding`;
	assert(place !== undefined, "a session says what it is");
	return place;
}

const refused = (message: string) => new Fault("service_unavailable", message);

/** Deadlines that a role was given are for its queries; a migration takes as long as its tables are large, and a start waits for another. */
export async function untimed(client: postgres.Sql): Promise<void> {
	await client`
		select set_config(name, '0', false) from pg_settings
		where name in ('statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout', 'idle_session_timeout', 'transaction_timeout')`;
}
