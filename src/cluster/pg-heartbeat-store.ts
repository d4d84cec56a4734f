import { onlyRow } from "../db/outage.ts";
import type { Statements } from "../db/statements.ts";
import { readControlAfter } from "./control-log.ts";
import type { HeartbeatStore, LogPosition } from "./heartbeat.ts";

/** Statements of the heartbeat; the functions are in `db/functions/cluster.sql`. */
export function createPgHeartbeatStore(statements: Statements): HeartbeatStore {
	return {
		async join(id, ttlMs, after = 0) {
			const rows = await statements<{ epoch: number }>`select instance_join(${id}, ${ttlMs}, ${after}) as epoch`;
			return Number(onlyRow(rows).epoch);
		},
		async position() {
			const rows = await statements<{ seq: string; server: string }>`
				select coalesce(max(seq), 0) as seq, server_mark() as server from control_log`;
			return positionOf(onlyRow(rows));
		},
		async goLive(id, epoch, applied, ttlMs) {
			const rows = await statements<{
				seq: string | null;
			}>`select instance_go_live(${id}, ${epoch}, ${applied}, ${ttlMs}) as seq`;
			const { seq } = onlyRow(rows);
			return seq === null ? null : Number(seq);
		},
		async heartbeat(id, epoch, applied, ttlMs) {
			const [row] = await statements<{ seq: string; server: string }>`
				select seq, server from instance_renew(${id}, ${epoch}, ${applied}, ${ttlMs})`;
			return row === undefined ? null : positionOf(row);
		},
		readAfter: (seq) => readControlAfter(statements, seq),
		async leave(id, epoch) {
			await statements`
				select instance_stand(${id}, ${epoch}, null, array['joining', 'live', 'silent', 'dead'], 'dead', null, null)`;
		},
	};
}

function positionOf({ seq, server }: { seq: string; server: string }): LogPosition {
	return { seq: Number(seq), server };
}
