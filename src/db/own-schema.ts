import type postgres from "postgres";
import { assert } from "../base/assert.ts";
import { Fault } from "../base/fault.ts";
import { formatSearchPath, quoteName, searchPathNames, setSearchPath } from "./session-settings.ts";

interface Place {
	readonly database: string;
	/** Role with which the session signed in. The settings of this role apply even after `set role`. */
	readonly role: string;
	readonly readOnly: string;
	readonly standby: boolean;
	readonly encoding: string;
}

/** Checks that this session may write. Throws a Fault that says what to do. */
export async function checkMayWrite(client: postgres.Sql): Promise<void> {
	const { database, role, standby, readOnly, encoding } = await look(client);
	if (standby) throw refused("The database is a standby, which takes no writes: point DATABASE_URL at the primary.");
	if (readOnly === "on")
		throw refused(
			`Transactions are read-only: \`alter role ${quoteName(role)} in database ${quoteName(database)} set default_transaction_read_only = off\`.`,
		);
	if (encoding !== "UTF8") throw refused(`The database's encoding is ${encoding}: create it again with encoding UTF8.`);
}

/**
 * Schema in the search path that has this service's tables; undefined if none. Fault if this role may not use it:
 * otherwise a second set of tables would be created in the role's own schema (`"$user"`).
 */
export async function findOwnSchema(client: postgres.Sql): Promise<string | undefined> {
	const [found] = await client<
		{ schema: string; mayUse: boolean; mayRead: boolean; isHidden: boolean; role: string }[]
	>`
		select nspname as schema, has_schema_privilege(n.oid, 'USAGE') as "mayUse", has_table_privilege(c.oid, 'SELECT') as "mayRead",
			row_security_active(c.oid) and not exists (select from pg_policy where polrelid = c.oid) as "isHidden", current_user as role
		from json_array_elements_text(${JSON.stringify(await searchPathNames(client))}::text::json) with ordinality path(name, at)
			join pg_namespace n on nspname = case name when '$user' then current_user else name end
			join pg_class c on relnamespace = n.oid and relname = 'schema_migration'
		where ${isOurs(client)}
		order by at limit 1`;
	if (found === undefined) return undefined;
	const [schema, role] = [quoteName(found.schema), quoteName(found.role)];
	const lacking = [
		found.mayUse ? [] : [`\`grant usage on schema ${schema} to ${role}\``],
		found.mayRead ? [] : [`\`grant all on all tables in schema ${schema} to ${role}\` and the same on all sequences`],
		found.isHidden ? [`\`alter role ${role} bypassrls\`, since row security hides all rows`] : [],
	].flat();
	if (lacking.length > 0)
		throw refused(
			`The tables in the schema ${schema} are another role's: ${lacking.join(", ")}; or, for other tables than those, set a search_path without that schema.`,
		);
	return found.schema;
}

/**
 * Schema for new tables: the first in the search path that is neither a system schema nor temporary. Fault if this
 * service's tables are in a schema outside the path: a restored backup may lack the role's settings.
 */
export async function schemaForTables(client: postgres.Sql): Promise<string> {
	const [first] = await client<{ schema: string; elsewhere: string | null }[]>`
		select schema, (
			select min(nspname) from pg_class c join pg_namespace n on n.oid = relnamespace
			where relname = 'schema_migration' and ${isOurs(client)}
				and (select current_setting(name) = boot_val from pg_settings where name = 'search_path')) as elsewhere
		from unnest(current_schemas(false)) with ordinality path(schema, at)
		where schema !~ '^pg_' and schema <> 'information_schema' order by at limit 1`;
	const { database, role } = await look(client);
	const setPathTo = (to: string) =>
		`\`alter role ${quoteName(role)} in database ${quoteName(database)} set search_path = ${to}\``;
	if (first === undefined)
		throw refused(`No schema of the search_path is there, or may be used: make one, or ${setPathTo("public")}.`);
	if (first.elsewhere !== null)
		throw refused(
			`There are tables in the schema ${quoteName(first.elsewhere)}, which is not on the search_path: ${setPathTo(quoteName(first.elsewhere))}; or, for other tables than those, ${setPathTo(quoteName(first.schema))}.`,
		);
	return first.schema;
}

/** SQL condition that a table belongs to this service: other programs may use the same table names. */
function isOurs(client: postgres.Sql) {
	return client`(select count(*) from pg_attribute where attrelid = c.oid and attname in ('name', 'applied_at', 'breaking')) = 3`;
}

/** Puts this schema first in the search path, so that tables of other schemas do not hide the service's tables. */
export async function putSchemaFirst(client: postgres.Sql, schema: string): Promise<void> {
	const others = (await searchPathNames(client)).filter((name) => name !== schema);
	await setSearchPath(client, formatSearchPath([schema, ...others]));
}

async function look(client: postgres.Sql): Promise<Place> {
	const [place] = await client<Place[]>`
		select current_database() as database, session_user as role, pg_is_in_recovery() as standby,
			current_setting('transaction_read_only') as "readOnly", current_setting('server_encoding') as encoding`;
	assert(place !== undefined, "a session says what it is");
	return place;
}

const refused = (message: string) => new Fault("service_unavailable", message);

/** Removes the role's deadlines, which are meant for short queries: a migration may take long. */
export async function removeDeadlines(client: postgres.Sql): Promise<void> {
	await client`
		select set_config(name, '0', false) from pg_settings
		where name in ('statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout', 'idle_session_timeout', 'transaction_timeout')`;
}

/** Checks that this role may create tables in the schema. It need not own the existing tables. */
export async function checkMayMakeTables(client: postgres.Sql, schema: string): Promise<void> {
	const [row] = await client<{ mayMake: boolean; role: string }[]>`
		select has_schema_privilege(oid, 'CREATE') as "mayMake", current_user as role from pg_namespace where nspname = ${schema}`;
	if (row === undefined || row.mayMake) return;
	throw refused(
		`The schema must be brought up to date, and this role may not: \`grant create on schema ${quoteName(schema)} to ${quoteName(row.role)}\`, or have its owner run \`tollgate migrate\`.`,
	);
}
