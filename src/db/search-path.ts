import type postgres from "postgres";

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

/** The address of connections that begin with this setting. */
export function withSetting(url: string, name: string, value: string): string {
	// If a setting occurs twice, the last one counts.
	return `${url}${url.includes("?") ? "&" : "?"}${name}=${encodeURIComponent(value)}`;
}
