import type { Hot } from "../db/hot.ts";
import { readControlAfter } from "./control-log.ts";
import type { MemberStore } from "./member.ts";

/** The member's statements on Postgres; the functions stand in `db/functions/cluster.sql`. */
export function createPgMemberStore(hot: Hot): MemberStore {
	const number = (value: string | null | undefined) => (value === null || value === undefined ? null : Number(value));
	return {
		async join(id, ttlMs) {
			const [row] = await hot<{ epoch: number }>`select instance_join(${id}, ${ttlMs}) as epoch`;
			return Number(row?.epoch);
		},
		async seq() {
			const [row] = await hot<{ seq: string }>`select seq from control_clock where id = 1`;
			return Number(row?.seq);
		},
		async goLive(id, epoch, applied, ttlMs) {
			const [row] = await hot<{
				seq: string | null;
			}>`select instance_go_live(${id}, ${epoch}, ${applied}, ${ttlMs}) as seq`;
			return number(row?.seq);
		},
		async heartbeat(id, epoch, applied, ttlMs) {
			const [row] = await hot<{
				seq: string | null;
			}>`select instance_heartbeat(${id}, ${epoch}, ${applied}, ${ttlMs}) as seq`;
			return number(row?.seq);
		},
		readAfter: (seq) => readControlAfter(hot, seq),
		async leave(id, epoch) {
			await hot`update instance set state = 'dead' where id = ${id} and epoch = ${epoch} and state in ('joining', 'live')`;
		},
	};
}
