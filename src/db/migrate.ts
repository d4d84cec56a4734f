import type postgres from "postgres";
import { assert } from "../base/assert.ts";
import { Fault } from "../base/fault.ts";
import type { Log } from "../base/log.ts";
import { VERSION } from "../base/version.ts";
import {
	checkMayCallFunctions,
	checkMayMakeSchema,
	createFunctions,
	dropFunctions,
	hasFunctions,
	removeFunctionsFromPath,
	withFunctionSet,
} from "./function-set.ts";
import { inTransaction } from "./in-transaction.ts";
import { type Migration, migrations } from "./migrations/list.ts";
import { checkOwnSession, withClient } from "./new-client.ts";
import {
	formatSearchPath,
	quoteName,
	searchPathNames,
	setSearchPath,
	withRequiredSettings,
} from "./session-settings.ts";

/** Number of the advisory lock for migrations: arbitrary, but equal in all versions. */
const ADVISORY_LOCK = 7_305_441_902;
/** First migration of 0.2's development versions, followed by the last commit that can upgrade them. */
const FIRST_OF_0_2 = "0000_credit";
const LAST_COMMIT_OF_0_2 = "869b8bb6";

/**
 * Migrates the schema, each migration in its own transaction. An advisory lock lets instances start together. Keeps
 * migrations of newer versions. Fault `conflict` if a newer migration breaks this version, or a new one breaks versions
 * that run.
 */
export async function migrate(deps: { log: Log }, url: string, list: readonly Migration[] = migrations) {
	return withClient(url, async (client) => {
		const required = await lookAtWay(client, url);
		await removeFunctionsFromPath(client);
		await checkMayWrite(client);
		await client`select pg_advisory_lock(${ADVISORY_LOCK})`;
		const { schema, missing } = await findMissing(client, list);
		if (missing.some(({ breaking }) => breaking)) await makeRoomForBreaking(client, missing);
		if (!(await hasOwnTables(client, schema))) await makeOwnTables(client);
		for (const { name, sql, breaking } of missing) {
			await inTransaction(client, async (transaction) => {
				await transaction.unsafe(sql);
				await transaction`insert into schema_migration (name, breaking) values (${name}, ${breaking ?? false})`;
			});
			deps.log.debug("applied a migration", { name });
		}
		if (missing.length > 0)
			deps.log.info("the schema is up to date", { migrations: missing.length, last: missing.at(-1)?.name });
		// Created after the migrations, because functions use the tables.
		await createFunctions(client, VERSION);
		const prepared = await withFunctionSet(client, required);
		await withClient(prepared, checkMayCallFunctions);
		return { applied: missing.map(({ name }) => name), url: prepared };
	});
}

/** Checks, without changing anything, that a start could migrate the schema. Throws a Fault that says what to do. */
export async function checkMigratable(url: string): Promise<void> {
	await withClient(url, async (client) => {
		await removeFunctionsFromPath(client);
		await findMissing(client, migrations);
	});
}

/**
 * Finds missing migrations and the schema for tables, and puts that schema first in the client's search path. Throws a
 * Fault, before any change, if something cannot be created.
 */
async function findMissing(client: postgres.Sql, list: readonly Migration[]) {
	const found = await findOwnSchema(client);
	const schema = found ?? (await schemaForTables(client));
	await putSchemaFirst(client, schema);
	const known = found === undefined ? new Map<string, boolean>() : await readList(client);
	refuseOthers(known, list);
	const missing = list.filter(({ name }) => !known.has(name));
	if (missing.length > 0) await checkMayMakeTables(client, schema);
	if (!(await hasFunctions(client))) await checkMayMakeSchema(client);
	return { schema, missing };
}

/** URL for clients if the database has all migrations and functions of this version; undefined otherwise. */
export async function migratedUrl(url: string): Promise<string | undefined> {
	return withClient(url, async (client) => {
		const required = await lookAtWay(client, url);
		await removeFunctionsFromPath(client);
		const schema = await findOwnSchema(client);
		if (schema === undefined || !(await hasOwnTables(client, schema)) || !(await hasFunctions(client)))
			return undefined;
		await putSchemaFirst(client, schema);
		const known = await readList(client);
		refuseOthers(known, migrations);
		if (!migrations.every(({ name }) => known.has(name))) return undefined;
		await checkMayCallFunctions(client);
		return withFunctionSet(client, required);
	});
}

/** Returns the URL with the required settings. Changes nothing. Throws the Fault of `checkOwnSession`. */
async function lookAtWay(client: postgres.Sql, url: string) {
	await checkOwnSession(client, url);
	const required = await withRequiredSettings(client, url);
	// Runs after `withRequiredSettings`, which must see the deadlines that the session has by default.
	await removeDeadlines(client);
	return required;
}

async function hasOwnTables(client: postgres.Sql, schema: string): Promise<boolean> {
	const [row] = await client`
		select from pg_class c join pg_namespace n on n.oid = relnamespace join pg_attribute on attrelid = c.oid
		where nspname = ${schema} and relname = 'schema_migration' and attname = 'breaking'`;
	return row !== undefined;
}

/** Creates the tables that record which migrations were executed. */
async function makeOwnTables(client: postgres.Sql): Promise<void> {
	await inTransaction(client, async (transaction) => {
		await transaction`
			create table if not exists schema_migration (
				name text primary key, applied_at timestamptz not null default now(), breaking boolean not null default false)`;
		await transaction`
			create table if not exists function_set (
				name text primary key, version text not null, laid_at timestamptz not null default now(), used_at timestamptz not null default now())`;
	});
}

async function readList(client: postgres.Sql): Promise<ReadonlyMap<string, boolean>> {
	const rows = await client<{ name: string; breaking: boolean }[]>`select name, breaking from schema_migration`;
	return new Map(rows.map(({ name, breaking }) => [name, breaking]));
}

/** Fault if the database's schema is of a version that cannot run together with this one. */
function refuseOthers(known: ReadonlyMap<string, boolean>, list: readonly Migration[]): void {
	if (known.has(FIRST_OF_0_2))
		throw new Fault(
			"conflict",
			`The database was made by a development version of version 0.2, which version ${VERSION} cannot read. The last commit that can is ${LAST_COMMIT_OF_0_2}. Start version ${VERSION} on an empty database.`,
		);
	const ours = new Set(list.map(({ name }) => name));
	const theirs = [...known].find(([name, breaking]) => breaking && !ours.has(name))?.[0];
	if (theirs === undefined) return;
	throw new Fault(
		"conflict",
		`The database belongs to a newer version: its migration ${theirs} breaks version ${VERSION}. Start the newer one, or restore the backup from before it.`,
	);
}

/** Fault if an instance runs, because a breaking migration would change the tables it uses. */
async function makeRoomForBreaking(client: postgres.Sql, missing: readonly Migration[]): Promise<void> {
	const [row] = await client<{ there: boolean }[]>`select to_regclass('instance_now') is not null as there`;
	if (row?.there !== true) return;
	const running = await client<{ id: string }[]>`
		select distinct id from instance_now where state in ('joining', 'live', 'silent') and lease_until > clock_timestamp() order by id`;
	if (running.length > 0) {
		const names = missing.filter(({ breaking }) => breaking).map(({ name }) => name);
		throw new Fault(
			"conflict",
			`The migration ${names.join(", ")} breaks the versions before it: stop all instances first (${running.map(({ id }) => id).join(", ")}).`,
		);
	}
	// Drops the functions of old versions, because they use tables that the migration changes.
	await dropFunctions(client, 1);
}

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
async function findOwnSchema(client: postgres.Sql): Promise<string | undefined> {
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
async function schemaForTables(client: postgres.Sql): Promise<string> {
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
async function putSchemaFirst(client: postgres.Sql, schema: string): Promise<void> {
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
async function removeDeadlines(client: postgres.Sql): Promise<void> {
	await client`
		select set_config(name, '0', false) from pg_settings
		where name in ('statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout', 'idle_session_timeout', 'transaction_timeout')`;
}

/** Checks that this role may create tables in the schema. It need not own the existing tables. */
async function checkMayMakeTables(client: postgres.Sql, schema: string): Promise<void> {
	const [row] = await client<{ mayMake: boolean; role: string }[]>`
		select has_schema_privilege(oid, 'CREATE') as "mayMake", current_user as role from pg_namespace where nspname = ${schema}`;
	if (row === undefined || row.mayMake) return;
	throw refused(
		`The schema must be brought up to date, and this role may not: \`grant create on schema ${quoteName(schema)} to ${quoteName(row.role)}\`, or have its owner run \`tollgate migrate\`.`,
	);
}
