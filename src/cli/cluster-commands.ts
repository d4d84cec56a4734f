import { systemClock } from "../base/clock.ts";
import { Fault } from "../base/fault.ts";
import { FENCE_GRACE_MS } from "../cluster/fence.ts";
import { createPgFenceStore } from "../cluster/pg-fence-store.ts";
import { migrate } from "../db/migrate.ts";
import type { Listed } from "../db/page.ts";
import type { Statements } from "../db/statements.ts";
import { recoverLost } from "../ledger/lost-journal.ts";
import { formatUsd, nanoUsdOfColumn } from "../money/nano-usd.ts";
import { type CommandRuns, UsageError } from "./command.ts";
import { listOutput } from "./table.ts";

/** Rows of a page. All instances that have not left fit on it; the long history continues on the next page. */
const INSTANCES_SHOWN = 1000;

export const clusterCommands: CommandRuns = {
	async "instance list"({ withDatabase }, input) {
		const page = await withDatabase(({ statements }) =>
			readInstances(statements, input.flag("all"), input.option("after") ?? null),
		);
		return listOutput(page, instanceJson, ["ID", "EPOCH", "STATE", "LEASE UNTIL", "APPLIED", "LEASED"], {
			STATE: (row) => (row.state === "live" && row.over ? "silent" : row.state),
			APPLIED: (row) => row.applied_seq,
		});
	},
	async "instance recover"({ withDatabase }, input) {
		if (!input.flag("journal-lost"))
			throw new UsageError("say --journal-lost to attest that no process of it runs and that its journal is gone");
		const id = input.argument(0);
		const { epochs, leases } = await withDatabase(({ statements, liveness }) =>
			recoverLost({ statements, fence: createPgFenceStore(liveness), clock: systemClock }, id, {
				graceMs: FENCE_GRACE_MS,
			}),
		);
		return { json: { id, epochs, leases }, text: `${id}: closed ${epochs} epochs with ${leases} leases` };
	},
	async migrate({ withDatabaseUrl, log }) {
		const { applied } = await withDatabaseUrl((url) => migrate({ log }, url));
		return {
			json: { applied },
			text: applied.length === 0 ? "the schema is up to date" : `applied ${applied.join(", ")}`,
		};
	},
};

interface InstanceRow {
	readonly id: string;
	readonly epoch: number;
	readonly state: string;
	readonly lease_until: Date;
	readonly over: boolean;
	readonly applied_seq: string;
	/** Credit in its open account leases that is not spent. */
	readonly leased: string;
}

const instanceJson = (row: InstanceRow) => ({
	id: row.id,
	epoch: row.epoch,
	state: row.state,
	lease_until: row.lease_until.toISOString(),
	lease_over: row.over,
	applied_seq: Number(row.applied_seq),
	leased_usd: formatUsd(nanoUsdOfColumn(row.leased)),
});

/** The form of an epoch in `after`. */
const placeOf = ({ id, epoch }: Pick<InstanceRow, "id" | "epoch">) => `${id}:${epoch}`;

/** Newest first. `after` skips that epoch and newer ones. */
async function readInstances(statements: Statements, all: boolean, after: string | null): Promise<Listed<InstanceRow>> {
	const rows = await statements<InstanceRow>`
		select i.id, i.epoch, i.state, i.lease_until, i.lease_until < clock_timestamp() as over, i.applied_seq,
			coalesce((
				select sum(l.granted_nano_usd - l.returned_nano_usd - l.settled_nano_usd)
				from lease l join budget b on b.id = l.budget_id and b.kind = 'account'
				where l.instance_id = i.id and l.epoch = i.epoch and l.state = 'open'
			), 0) as leased
		from instance_now i left join instance_now a on a.id || ':' || a.epoch = ${after}::text
		where (${all}::boolean or i.state <> 'left') and (${after}::text is null or (i.started_at, i.id, i.epoch) < (a.started_at, a.id, a.epoch))
		order by i.started_at desc, i.id desc, i.epoch desc limit ${INSTANCES_SHOWN + 1}`;
	if (rows.length === 0 && after !== null) await assertIsThere(statements, after);
	const items = rows.slice(0, INSTANCES_SHOWN);
	const last = items.at(-1);
	return { items, next: rows.length > INSTANCES_SHOWN && last !== undefined ? placeOf(last) : null };
}

/**
 * After a row that no longer exists nothing is found, which must not look like the end of the list. Fault `not_found`.
 */
async function assertIsThere(statements: Statements, place: string): Promise<void> {
	const found = await statements`select 1 from instance_beat where id || ':' || epoch = ${place} limit 1`;
	if (found.length === 0)
		throw new Fault("not_found", `There is no ${place}, or none any more: begin again without --after.`);
}
