import { systemClock } from "../base/clock.ts";
import { FENCE_GRACE_MS } from "../cluster/fence.ts";
import { createPgFenceStore } from "../cluster/pg-fence-store.ts";
import { type InstanceView, listInstances } from "../console/operator/operator-cluster.ts";
import { migrate } from "../db/migrate.ts";
import { recoverLostInstance } from "../ledger/lost-journal.ts";
import { formatUsd } from "../money/nano-usd.ts";
import { type CommandRuns, UsageError } from "./command.ts";
import { listOutput } from "./table.ts";

export const clusterCommands: CommandRuns = {
	async "instance list"({ withDatabase }, input) {
		const instances = await withDatabase(({ statements }) => listInstances(statements));
		const items = input.flag("all") ? instances : instances.filter(({ state }) => state !== "left");
		const columns = ["ID", "EPOCH", "STATE", "LEASE UNTIL", "APPLIED", "LEASED"];
		return listOutput({ items, next: null }, instanceJson, columns, { APPLIED: (row) => String(row.appliedSeq) });
	},
	async "instance recover"({ withDatabase }, input) {
		if (!input.flag("journal-lost"))
			throw new UsageError(
				"add --journal-lost to confirm that no process of the instance runs and that its journal is lost",
			);
		const id = input.argument(0);
		const { epochs, leases } = await withDatabase(({ statements, liveness }) =>
			recoverLostInstance({ statements, fence: createPgFenceStore(liveness), clock: systemClock }, id, {
				graceMs: FENCE_GRACE_MS,
			}),
		);
		return { json: { id, epochs, leases }, text: `${id}: closed ${epochs} epochs and released ${leases} leases` };
	},
	async migrate({ withDatabaseUrl, log }) {
		const { applied } = await withDatabaseUrl((url) => migrate({ log }, url));
		return {
			json: { applied },
			text: applied.length === 0 ? "the schema is up to date" : `applied ${applied.join(", ")}`,
		};
	},
};

const instanceJson = (row: InstanceView) => ({
	id: row.id,
	epoch: row.epoch,
	state: row.state,
	lease_until: new Date(row.leaseUntilMs).toISOString(),
	applied_seq: row.appliedSeq,
	leased_usd: formatUsd(row.heldNanoUsd),
});
