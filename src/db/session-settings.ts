import type postgres from "postgres";

interface RequiredSetting {
	readonly name: string;
	/** Value that every connection requests. */
	readonly value: string;
	/** True if the value that the server shows means the same as `value`. */
	isMet(shown: string): boolean;
}

function required(name: string, value: string, isMet = (shown: string) => shown === value): RequiredSetting {
	return { name, value, isMet };
}

/**
 * Settings that every connection needs, although the role, the database or the URL may set others.
 * - The driver parses times and bytes in these styles; otherwise it mistakes a day for a month.
 * - Functions that waited for a row continue with its new version, which stricter isolation levels refuse.
 * - Lists of settlements contain nulls.
 * - The server must not close idle connections, because the next statement could fail.
 * - The check of the books is one long transaction, which the service's own deadlines end.
 */
const REQUIRED: readonly RequiredSetting[] = [
	required("DateStyle", "ISO", (shown) => shown.startsWith("ISO")),
	required("bytea_output", "hex"),
	required("default_transaction_isolation", "read committed"),
	required("array_nulls", "on"),
	// With a lower value, numbers lose digits, even positions and milliseconds.
	required("extra_float_digits", "1", (shown) => Number(shown) >= 0),
	required("client_encoding", "UTF8"),
	required("standard_conforming_strings", "on"),
	required("idle_session_timeout", "0"),
	required("transaction_timeout", "0"),
];

/** Adds the settings to the URL that differ in `client`, which is connected to that URL. */
export async function withRequiredSettings(client: postgres.Sql, url: string): Promise<string> {
	const shown = await show(client);
	const asked = REQUIRED.filter(({ isMet, value }, at) => !isMet(shown[at] ?? value));
	return asked.reduce((to, { name, value }) => addUrlSetting(to, name, value), url);
}

/** Values of the settings in this session; null if this version of the server lacks one. */
async function show(client: postgres.Sql): Promise<readonly (string | null)[]> {
	const [row] = await client.unsafe<{ shown: string }[]>(
		`select json_build_array(${REQUIRED.map(({ name }) => `current_setting('${name}', true)`).join(", ")})::text as shown`,
	);
	return JSON.parse(row?.shown ?? "[]");
}

/** Schemas in the connection's search_path, even missing ones. `$user` is replaced by the role's name. */
export async function searchPathNames(client: postgres.Sql | postgres.TransactionSql): Promise<readonly string[]> {
	const [row] = await client<{ path: string }[]>`select current_setting('search_path') as path`;
	// Splits the list at commas, but not within quotes: a quoted name may contain a comma.
	const names = (row?.path ?? "").match(/"(?:[^"]|"")*"|[^\s,]+/g) ?? [];
	return names.map((name) => (name.startsWith('"') ? name.slice(1, -1).replaceAll('""', '"') : lower(name)));
}

/** Converts an unquoted name to lower case, as PostgreSQL does. */
const lower = (name: string) => name.replace(/[A-Z]/g, (letter) => letter.toLowerCase());

export function formatSearchPath(names: readonly string[]): string {
	return names.map((name) => (/^[a-z_][a-z0-9_]*$/.test(name) ? name : quoteName(name))).join(", ");
}

export const quoteName = (name: string): string => `"${name.replaceAll('"', '""')}"`;

export async function setSearchPath(client: postgres.Sql | postgres.TransactionSql, path: string, isLocal = false) {
	await client`select set_config('search_path', ${path}, ${isLocal})`;
}

export function addUrlSetting(url: string, name: string, value: string): string {
	// Appended at the end, because the last of equal names counts.
	return `${url}${url.includes("?") ? "&" : "?"}${name}=${encodeURIComponent(value)}`;
}
