import type postgres from "postgres";

/** Makes the database report another server identity, as after a standby's takeover. */
export async function moveToAnotherServer(sql: postgres.ISql, name = "another"): Promise<void> {
	await sql.unsafe(
		`create or replace function server_place() returns text language plpgsql as 'begin return ''${name}/1 0''; end'`,
	);
}
