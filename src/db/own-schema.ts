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
