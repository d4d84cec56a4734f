import type postgres from "postgres";

interface RequiredSetting {
	readonly name: string;
	/** Value that connections request. */
	readonly value: string;
	/** True if the value that the server shows has the same meaning. */
	isMet(shown: string): boolean;
}

function required(name: string, value: string, isMet = (shown: string) => shown === value): RequiredSetting {
	return { name, value, isMet };
}

/**
 * Settings that every connection needs, though role, database or URL may set others.
 * - The driver parses times and bytes in these styles; otherwise it mistakes a day for a month.
 * - Functions that waited for a row continue with its new version, which stricter isolation levels refuse.
 * - Lists of settlements contain nulls.
 * - The server must not close idle connections, which could hit the next statement.
 * - The check of the ledger is one long transaction, which our own deadlines end.
 */
const REQUIRED: readonly RequiredSetting[] = [
	required("DateStyle", "ISO", (shown) => shown.startsWith("ISO")),
	required("bytea_output", "hex"),
	required("default_transaction_isolation", "read committed"),
	required("array_nulls", "on"),
	// With a lower value numbers lose digits, even file positions and milliseconds.
	required("extra_float_digits", "1", (shown) => Number(shown) >= 0),
	required("client_encoding", "UTF8"),
	required("standard_conforming_strings", "on"),
	required("idle_session_timeout", "0"),
	required("transaction_timeout", "0"),
];

/** Adds to the URL the settings that differ in `client`, which is connected to it. */
export async function withRequiredSettings(client: postgres.Sql, url: string): Promise<string> {
	const shown = await show(client);
	const asked = REQUIRED.filter(({ isMet, value }, at) => !isMet(shown[at] ?? value));
	return asked.reduce((to, { name, value }) => withSetting(to, name, value), url);
}

/** Shown values of the settings; null if this server's version lacks one. */
async function show(client: postgres.Sql): Promise<readonly (string | null)[]> {
	const [row] = await client.unsafe<{ shown: string }[]>(
		`select json_build_array(${REQUIRED.map(({ name }) => `current_setting('${name}', true)`).join(", ")})::text as shown`,
	);
	return JSON.parse(row?.shown ?? "[]");
}

/** Schemas in the connection's search_path, even missing ones, with the role's name for `$user`. */
export async function searchPathNames(client: postgres.Sql | postgres.TransactionSql): Promise<readonly string[]> {
	const [row] = await client<{ path: string }[]>`select current_setting('search_path') as path`;
	// A quoted name may contain a comma.
	const names = (row?.path ?? "").match(/"(?:[^"]|"")*"|[^\s,]+/g) ?? [];
	return names.map((name) => (name.startsWith('"') ? name.slice(1, -1).replaceAll('""', '"') : lower(name)));
}

/** Converts an unquoted name to lower case, as PostgreSQL does. */
const lower = (name: string) => name.replace(/[A-Z]/g, (letter) => letter.toLowerCase());

export function formatSearchPath(names: readonly string[]): string {
	return names.map((name) => (/^[a-z_][a-z0-9_]*$/.test(name) ? name : quoteName(name))).join(", ");
}

/** Quotes the name of a role, schema or database for SQL. */
export function quoteName(name: string): string {
	return `"${name.replaceAll('"', '""')}"`;
}

export async function setSearchPath(client: postgres.Sql | postgres.TransactionSql, path: string, isLocal = false) {
	await client`select set_config('search_path', ${path}, ${isLocal})`;
}

export function withSetting(url: string, name: string, value: string): string {
	// Appended, because the last of equal names counts.
	return `${url}${url.includes("?") ? "&" : "?"}${name}=${encodeURIComponent(value)}`;
}
