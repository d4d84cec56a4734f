import type postgres from "postgres";
import { Fault } from "../base/fault.ts";

interface RequiredSetting {
	readonly name: string;
	/** The value that connections request. */
	readonly value: string;
	/** Whether the value that the server shows is equivalent. */
	isMet(shown: string): boolean;
}

function required(name: string, value: string, isMet = (shown: string) => shown === value): RequiredSetting {
	return { name, value, isMet };
}

/**
 * Settings that every connection needs; a role, a database or its address may set others.
 * - The driver reads times and bytes by the first two: in another style it takes a day for a month, and cannot read
 *   encrypted bytes.
 * - Functions that wait for a row go on with its new version, which stricter isolations refuse.
 * - Lists of settlements contain nulls.
 * - An idle connection must not be ended: the end could meet the next statement.
 * - The check of all books is one transaction, which our own deadlines end.
 */
const REQUIRED: readonly RequiredSetting[] = [
	required("DateStyle", "ISO", (shown) => shown.startsWith("ISO")),
	required("bytea_output", "hex"),
	required("default_transaction_isolation", "read committed"),
	required("array_nulls", "on"),
	// Below it numbers lose digits before the point, too: of file positions, of milliseconds.
	required("extra_float_digits", "1", (shown) => Number(shown) >= 0),
	required("client_encoding", "UTF8"),
	required("standard_conforming_strings", "on"),
	required("idle_session_timeout", "0"),
	required("transaction_timeout", "0"),
];

/** The address with the settings in which `client`, of this address, differs: a pooler need not pass on the others. */
export async function withRequiredSettings(client: postgres.Sql, url: string): Promise<string> {
	const shown = await show(client);
	const asked = REQUIRED.filter(({ isMet, value }, at) => !isMet(shown[at] ?? value));
	return asked.reduce((to, { name, value }) => withSetting(to, name, value), url);
}

/** Checks that connections with an address from `withRequiredSettings` have all of the settings. */
export async function checkRequiredSettings(client: postgres.Sql): Promise<void> {
	const shown = await show(client);
	const at = REQUIRED.findIndex(({ isMet, value }, index) => !isMet(shown[index] ?? value));
	const lost = REQUIRED[at];
	if (lost === undefined) return;
	throw new Fault(
		"service_unavailable",
		`Connections to the database have ${lost.name} = ${shown[at]}, and a pooler overlooks that we ask for ${lost.value}: set it so for this role and database (\`alter role … set\`).`,
	);
}

/** Null for a setting that this server's version does not have. */
async function show(client: postgres.Sql): Promise<readonly (string | null)[]> {
	const [row] = await client.unsafe<{ shown: string }[]>(
		`select json_build_array(${REQUIRED.map(({ name }) => `current_setting('${name}', true)`).join(", ")})::text as shown`,
	);
	return JSON.parse(row?.shown ?? "[]");
}

/** The schemas of the connection's search_path as set, existing or not; `$user` stands for the role's own. */
export async function pathNames(client: postgres.Sql | postgres.TransactionSql): Promise<readonly string[]> {
	const [row] = await client<{ path: string }[]>`select current_setting('search_path') as path`;
	// A quoted name may contain a comma.
	const names = (row?.path ?? "").match(/"(?:[^"]|"")*"|[^\s,]+/g) ?? [];
	return names.map((name) => (name.startsWith('"') ? name.slice(1, -1).replaceAll('""', '"') : lower(name)));
}

/** As PostgreSQL reads an unquoted name. */
const lower = (name: string) => name.replace(/[A-Z]/g, (letter) => letter.toLowerCase());

export function pathText(names: readonly string[]): string {
	return names.map((name) => (/^[a-z_][a-z0-9_]*$/.test(name) ? name : quoted(name))).join(", ");
}

/** The name of a role, a schema or a database, as SQL text. */
export function quoted(name: string): string {
	return `"${name.replaceAll('"', '""')}"`;
}

export async function setPath(client: postgres.Sql | postgres.TransactionSql, path: string, isLocal = false) {
	await client`select set_config('search_path', ${path}, ${isLocal})`;
}

export function withSetting(url: string, name: string, value: string): string {
	// If a setting occurs twice, the last one counts.
	return `${url}${url.includes("?") ? "&" : "?"}${name}=${encodeURIComponent(value)}`;
}
