import type postgres from "postgres";

/** Makes the database report a different server identity, as after the takeover by a standby. */
export async function moveToAnotherServer(sql: postgres.ISql, name = "another"): Promise<void> {
	await sql.unsafe(
		`create or replace function server_place() returns text language plpgsql as 'begin return ''${name}/1 0''; end'`,
	);
}
