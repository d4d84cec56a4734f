/** An instance of the ledger in this process, without a gateway around it. */
import { join } from "node:path";
import { systemClock } from "../../src/base/clock.ts";
import { silentLog } from "../../src/base/log.ts";
import type { Database } from "../../src/db/database.ts";
import type { InstanceLease } from "../../src/ledger/instance-lease.ts";
import { startInstanceLease } from "../../src/ledger/instance-lease.ts";
import type { Ledger } from "../../src/ledger/ledger.ts";
import { createPgLedgerStore } from "../../src/ledger/pg-store.ts";
import type { LedgerStore } from "../../src/ledger/store.ts";

export interface LiveInstance {
	readonly lease: InstanceLease;
	readonly ledger: Ledger;
	readonly store: LedgerStore;
	stop(): Promise<unknown>;
}

const LEASE_TTL_MS = 60_000;
const DRAIN_MS = 30_000;

/** Joins as `id`, with its journal under `folder`. */
export async function liveInstance(db: Database, folder: string, id: string): Promise<LiveInstance> {
	const lease = await startInstanceLease(
		{ db, clock: systemClock, log: silentLog, apply() {}, reset() {}, onDiskFailed() {} },
		{ instanceId: id, dataDir: join(folder, id), mode: "process", leaseTtlMs: LEASE_TTL_MS },
	);
	const ledger = lease.ledger();
	if (ledger === undefined) throw new Error("the instance is not live");
	const store = createPgLedgerStore({ statements: db.ledger }, id, ledger.epoch);
	return { lease, ledger, store, stop: () => lease.stop(DRAIN_MS) };
}
