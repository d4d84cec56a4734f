import { silentLog } from "../base/log.ts";
import { onlyRow } from "../db/outage.ts";
import { createServerHistory, type ServerHistory } from "../db/server-history.ts";
import type { Statements } from "../db/statements.ts";
import { readControlAfter } from "./control-log.ts";
import type { HeartbeatStore, LogPosition } from "./heartbeat.ts";

interface PlaceRow {
	readonly seq: string;
	readonly place: string;
}

/** Statements of the heartbeat. Their functions are in `db/functions/cluster.sql`. */
export function createPgHeartbeatStore(
	statements: Statements,
	history: ServerHistory = createServerHistory({ log: silentLog }),
): HeartbeatStore {
	let reportedSetbacks = 0;

	/** Runs a statement that returns `server_place()`. The returned label is the new one if the history has changed. */
	async function position(ask: () => Promise<readonly PlaceRow[]>): Promise<LogPosition | null> {
		const look = history.look();
		const [row] = await ask();
		if (row === undefined) return null;
		look(row.place);
		return { seq: Number(row.seq), server: history.label() };
	}

	return {
		async join(id, ttlMs, after = 0) {
			const setbacks = history.setbacks();
			if (setbacks > reportedSetbacks) await statements`select server_went_back()`;
			reportedSetbacks = setbacks;
			const rows = await statements<{ epoch: number }>`select instance_join(${id}, ${ttlMs}, ${after}) as epoch`;
			return Number(onlyRow(rows).epoch);
		},
		async position() {
			const found = await position(
				() => statements<PlaceRow>`select coalesce(max(seq), 0) as seq, server_place() as place from control_log`,
			);
			return onlyRow(found === null ? [] : [found]);
		},
		async goLive(id, epoch, applied, ttlMs) {
			const rows = await statements<{
				seq: string | null;
			}>`select instance_go_live(${id}, ${epoch}, ${applied}, ${ttlMs}) as seq`;
			const { seq } = onlyRow(rows);
			return seq === null ? null : Number(seq);
		},
		heartbeat: (id, epoch, applied, ttlMs) =>
			position(
				() =>
					statements<PlaceRow>`select seq, server as place from instance_renew(${id}, ${epoch}, ${applied}, ${ttlMs})`,
			),
		readAfter: (seq) => readControlAfter(statements, seq, history.look()),
		async leave(id, epoch) {
			await statements`
				select instance_stand(${id}, ${epoch}, null, array['joining', 'live', 'silent', 'dead'], 'dead', null, null)`;
		},
	};
}
