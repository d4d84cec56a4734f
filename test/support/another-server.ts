import type postgres from "postgres";

/** From here on the database says that it lives on another server, as where a standby took over. */
export async function moveToAnotherServer(sql: postgres.ISql): Promise<void> {
	await sql`create or replace function server_mark() returns text language plpgsql as 'begin return ''another/1''; end'`;
}
