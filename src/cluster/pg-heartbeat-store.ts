import type { Statements } from "../db/statements.ts";
import { readControlAfter } from "./control-log.ts";
import type { HeartbeatStore } from "./heartbeat.ts";

/** The heartbeat's statements on Postgres; the functions stand in `db/functions/cluster.sql`. */
export function createPgHeartbeatStore(statements: Statements): HeartbeatStore {
	const number = (value: string | null | undefined) => (value === null || value === undefined ? null : Number(value));
	return {
		async join(id, ttlMs) {
			const [row] = await statements<{ epoch: number }>`select instance_join(${id}, ${ttlMs}) as epoch`;
			return Number(row?.epoch);
		},
		async seq() {
			const [row] = await statements<{ seq: string }>`select seq from control_clock where id = 1`;
			return Number(row?.seq);
		},
		async goLive(id, epoch, applied, ttlMs) {
			const [row] = await statements<{
				seq: string | null;
			}>`select instance_go_live(${id}, ${epoch}, ${applied}, ${ttlMs}) as seq`;
			return number(row?.seq);
		},
		async heartbeat(id, epoch, applied, ttlMs) {
			const [row] = await statements<{
				seq: string | null;
			}>`select instance_heartbeat(${id}, ${epoch}, ${applied}, ${ttlMs}) as seq`;
			return number(row?.seq);
		},
		readAfter: (seq) => readControlAfter(statements, seq),
		async leave(id, epoch) {
			await statements`update instance set state = 'dead' where id = ${id} and epoch = ${epoch} and state in ('joining', 'live')`;
		},
	};
}
