/** How much the server has written to its log since its first day, bytes. */
import type postgres from "postgres";

export async function walBytes(sql: postgres.Sql): Promise<number> {
	const [row] = await sql<{ bytes: string }[]>`select pg_current_wal_lsn() - '0/0'::pg_lsn as bytes`;
	return Number(row?.bytes);
}
