import { LIVENESS_CONNECTION_LIFE_MS } from "../db/database.ts";
import { onlyRow } from "../db/outage.ts";
import type { Statements } from "../db/statements.ts";
import type { FenceStore, LaggingInstance } from "./fence.ts";
import type { WitnessStore } from "./witness.ts";

interface BeatRow {
	id: string;
	epoch: number;
	beat: string;
	ttl_ms: number;
	lease_until: Date;
}

/** Statements of fences and witnesses. Their functions are in `db/functions/cluster.sql`. */
export function createPgFenceStore(statements: Statements): FenceStore & WitnessStore {
	return {
		async lagging({ seq, atMicros }) {
			const rows = await statements<BeatRow>`
				select id, epoch, beat, ttl_ms, lease_until from instance_lagging(${seq}, ${atMicros})`;
			return rows.map(instanceOf);
		},
		async fenceOff(id, epoch, beat) {
			await statements`select instance_stand(${id}, ${epoch}, ${beat}, array['joining', 'live', 'silent'], 'dead', null, null)`;
		},
		async server() {
			const rows = await statements<{ mark: string; fresh: boolean; ttl_ms: number }>`
				select mark, fresh, ttl_ms from server_fresh()`;
			const { mark, fresh, ttl_ms } = onlyRow(rows);
			// Includes the life of a connection, for which an instance may still send heartbeats to the previous server.
			return { mark, unquietMs: fresh && ttl_ms > 0 ? ttl_ms + LIVENESS_CONNECTION_LIFE_MS : 0 };
		},
		async quiet(mark) {
			await statements`insert into server_seen (mark, quiet) values (${mark}, true) on conflict do nothing`;
		},
		async live() {
			return (
				await statements<BeatRow>`select id, epoch, beat, ttl_ms, lease_until from instance_now where state = 'live'`
			).map(instanceOf);
		},
		async silent(id, epoch, beat) {
			await statements`select instance_stand(${id}, ${epoch}, ${beat}, array['live'], 'silent', null, null)`;
		},
	};
}

const instanceOf = (row: BeatRow): LaggingInstance => ({
	id: row.id,
	epoch: row.epoch,
	beat: Number(row.beat),
	ttlMs: row.ttl_ms,
	leaseUntilMs: row.lease_until.getTime(),
});
