import type postgres from "postgres";

/** The schemas of the connection's search_path as it is set, there or not; `$user` stands for the role's own. */
export async function pathNames(client: postgres.Sql | postgres.TransactionSql): Promise<readonly string[]> {
	const [row] = await client<{ path: string }[]>`select current_setting('search_path') as path`;
	// A name between quotation marks may have a comma in it.
	const names = (row?.path ?? "").match(/"(?:[^"]|"")*"|[^\s,]+/g) ?? [];
	return names.map((name) => (name.startsWith('"') ? name.slice(1, -1).replaceAll('""', '"') : lower(name)));
}

/** As PostgreSQL reads a name without quotation marks. */
const lower = (name: string) => name.replace(/[A-Z]/g, (letter) => letter.toLowerCase());

export function pathText(names: readonly string[]): string {
	return names.map((name) => (/^[a-z_][a-z0-9_]*$/.test(name) ? name : quoted(name))).join(", ");
}

/** A name of a role, a schema, a database, as a statement has it. */
export function quoted(name: string): string {
	return `"${name.replaceAll('"', '""')}"`;
}

export async function setPath(client: postgres.Sql | postgres.TransactionSql, path: string, isLocal = false) {
	await client`select set_config('search_path', ${path}, ${isLocal})`;
}

/** The address of connections that begin with it. */
export function withSetting(url: string, name: string, value: string): string {
	// Of one that is there twice the last counts.
	return `${url}${url.includes("?") ? "&" : "?"}${name}=${encodeURIComponent(value)}`;
}
