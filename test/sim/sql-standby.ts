import type postgres from "postgres";
import type { SimDatabase } from "./database.ts";
import { keepWhatIsLost } from "./failover.ts";
import type { SqlMirror } from "./sql-mirror.ts";
import { FOLLOWED } from "./sql-schema.ts";
import type { SqlServer } from "./sql-server.ts";
import type { World } from "./world.ts";

/** The tables of money, keys and instances. */
const COPIED = [...FOLLOWED, "api_key", "lease_op", "key_share", "server_seen"];

/** An asynchronous standby: when it is promoted, commits after its copy are lost. */
export function createSqlStandby(
	world: Omit<World, "database">,
	server: SqlServer,
	mirror: SqlMirror,
): NonNullable<SimDatabase["standby"]> {
	let isCopied = false;

	async function copy(sql: postgres.Sql): Promise<void> {
		await sql.unsafe("begin isolation level repeatable read");
		for (const table of COPIED) {
			await sql.unsafe(`drop table if exists copy.${table}`);
			await sql.unsafe(`create table copy.${table} as table public.${table}`);
		}
		await sql.unsafe("drop table if exists copy.tickets");
		await sql.unsafe("create table copy.tickets as select last_value, is_called from public.recall_ticket");
		await sql.unsafe("commit");
	}

	async function restore(sql: postgres.Sql): Promise<void> {
		await sql.unsafe("begin");
		await sql.unsafe("set local session_replication_role = replica");
		await sql.unsafe(`truncate ${COPIED.map((table) => `public.${table}`).join(", ")} cascade`);
		for (const table of COPIED) await sql.unsafe(`insert into public.${table} select * from copy.${table}`);
		await sql.unsafe("select setval('public.recall_ticket', last_value, is_called) from copy.tickets");
		await sql.unsafe("select setval('sim.timeline', last_value + 1) from sim.timeline");
		await sql.unsafe("commit");
		const revoked = await sql<{ id: string }[]>`select id from api_key where state = 'revoked'`;
		const known = new Set(world.model.usage.keys());
		await mirror.readAll();
		keepWhatIsLost(world, known, new Set(revoked.map(({ id }) => id)));
	}

	return {
		copy() {
			server.task(copy, () => {
				isCopied = true;
			});
		},
		promote(promoted) {
			if (isCopied) server.task(restore, promoted);
			else promoted();
		},
	};
}
