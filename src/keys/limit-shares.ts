import { assert } from "../base/assert.ts";
import { BATCH_ROWS, deleteInBatches, type Statements } from "../db/statements.ts";
import type { LimitKind, ShareStore } from "../limits/share-store.ts";

/** Channel that announces keys of which an instance needs a larger share of a limit. */
export const LIMITS_CHANNEL = "tollgate_limits";

/** Maximum earlier epochs that are remembered: shares count for two minutes after an epoch, and epochs last seconds. */
const FORMER_MAX = 64;

interface GrantRow {
	key: string;
	kind: LimitKind;
	share: number;
	free: number;
}

/** Shares of keys' limits in Postgres, by the function `limit_hold` in `../db/functions/limits.sql`. */
export function createPgShareStore(deps: {
	statements: Statements;
	/** Identity of this process. After a fence, the process joins the cluster again with a higher epoch. */
	instanceLease: { readonly instanceId: string; present(): { readonly epoch: number } | undefined };
}): ShareStore {
	const { statements, instanceLease } = deps;
	let epoch: number | undefined;
	const former: number[] = [];
	return {
		async hold(asks) {
			// A stopping instance has no current epoch, and returns its shares under its last one.
			const present = instanceLease.present()?.epoch ?? epoch;
			assert(present !== undefined, "shares are held by an instance that was live");
			if (epoch !== undefined && epoch !== present) former.push(epoch);
			if (former.length > FORMER_MAX) former.shift();
			epoch = present;
			return statements<GrantRow>`
				select key, kind, share, free
				from limit_hold(${instanceLease.instanceId}, ${epoch}, ${`{${former}}`}::text::integer[], ${JSON.stringify(asks)}::text::json)`;
		},
	};
}

/**
 * Deletes shares that no longer count; called by a console's job. Keeps shares of live instances even if their lease
 * seems over, because the database's clock may have been set forward.
 */
export async function deleteOldShares(statements: Statements): Promise<void> {
	await deleteInBatches(async () => {
		const rows = await statements`
			delete from key_share s where (s.key_id, s.kind, s.instance_id, s.epoch) in (
				select s.key_id, s.kind, s.instance_id, s.epoch from key_share s left join instance_now i on i.id = s.instance_id and i.epoch = s.epoch
				where s.at < clock_timestamp() - interval '10 minutes'
					and (i.id is null or s.amount = 0
						or i.state <> 'live' and greatest(i.lease_until, i.ended_at) < clock_timestamp() - interval '10 minutes')
				limit ${BATCH_ROWS})
			returning 1`;
		return rows.length;
	});
}
