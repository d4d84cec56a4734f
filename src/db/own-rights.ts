import type postgres from "postgres";
import { Fault } from "../base/fault.ts";
import type { Migration } from "./migrations/list.ts";
import { quoted } from "./search-path.ts";

/** Our objects by name: the schema may be shared with other programs, and several roles may own them. */
export interface OwnNames {
	readonly schema: string;
	readonly names: readonly string[];
}

/** Tables, views and sequences that these migrations make, and the two tables that list migrations and functions. */
export function namesMadeBy(list: readonly Migration[]): readonly string[] {
	const made = list.flatMap(({ sql }) => [...sql.matchAll(/\bcreate (?:table|view|sequence) "?(\w+)/gi)]);
	return ["schema_migration", "function_set", ...made.map(([, name = ""]) => name)];
}

/**
 * Checks that this role may carry migrations out in that schema. Only a table's owner may change it, and tables that
 * another role makes have another owner. Without the check that would show when half of the migrations are done.
 */
export async function checkMayMakeTables(client: postgres.Sql, { schema, names }: OwnNames): Promise<void> {
	const rows = await client<{ mayMake: boolean; role: string; owner: string | null; isOurs: boolean | null }[]>`
		select distinct has_schema_privilege(n.oid, 'CREATE') as "mayMake", current_user as role,
			pg_get_userbyid(relowner) as owner, pg_has_role(relowner, 'USAGE') as "isOurs"
		from pg_namespace n left join pg_class c on relnamespace = n.oid and relname in ${all(client, names)}
		where nspname = ${schema} order by owner`;
	const owners = rows.flatMap(({ owner }) => (owner === null ? [] : [quoted(owner)]));
	const [first] = rows;
	if (rows.some(({ isOurs }) => isOurs === false))
		throw refused(
			owners.length === 1
				? `The schema must be brought up to date, and its tables are another role's: have ${owners[0]} run \`tollgate migrate\`.`
				: `The schema must be brought up to date, and its tables are several roles' (${owners.join(", ")}): make all of them one's (\`alter table … owner to\`), and have that one run \`tollgate migrate\`.`,
		);
	if (first?.mayMake !== true)
		throw refused(
			`The schema must be brought up to date, and this role may not: \`grant create on schema ${quoted(schema)} to ${quoted(first?.role ?? "")}\`, or have its owner run \`tollgate migrate\`.`,
		);
}

/**
 * Fault if another program has tables, views, sequences or types of these names. Without the check that would show when
 * some of our tables exist. Each table is a type, too.
 */
export async function checkNoneAreOthers(client: postgres.Sql, { schema, names }: OwnNames): Promise<void> {
	const others = await client<{ name: string; role: string; database: string }[]>`
		select distinct name, session_user as role, current_database() as database
		from (
			select relnamespace as oid, relname as name from pg_class
			union all select typnamespace, typname from pg_type) named join pg_namespace n using (oid)
		where nspname = ${schema} and name in ${all(client, names)} order by 1`;
	const [first] = others;
	if (first === undefined) return;
	throw refused(
		`The schema ${quoted(schema)} has tables or types of another program with names of ours (${others.map(({ name }) => name).join(", ")}): \`create schema tollgate\` and \`alter role ${quoted(first.role)} in database ${quoted(first.database)} set search_path = tollgate\`.`,
	);
}

/** As JSON, since the client does not know arrays. */
const all = (client: postgres.Sql, names: readonly string[]) =>
	client`(select json_array_elements_text(${JSON.stringify(names)}::text::json))`;

const refused = (message: string) => new Fault("service_unavailable", message);
