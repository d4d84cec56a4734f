/**
 * A process with an instance lease that reads commands from standard input, one per line:
 *
 *   open ID AMOUNT            reserves and prints `opened ID`, or `refused ID`
 *   progress ID DELIVERED BOUND
 *   settle ID COST            prints `settled ID`
 *   stop [DRAIN_MS]           stops in order within 5 s or DRAIN_MS, prints `stopped true|false`, ends
 *
 * Usage: instance-lease-child DATABASE_URL DATA_DIR INSTANCE[,INSTANCE…] LEASE_TTL_MS
 *
 * With several instances an ID ends with a hyphen and its instance's name; without one it belongs to the first.
 */
import { writeSync } from "node:fs";
import { createInterface } from "node:readline";
import { systemClock } from "../../src/base/clock.ts";
import { newUuid } from "../../src/base/id.ts";
import { silentLog } from "../../src/base/log.ts";
import { createDatabase } from "../../src/db/database.ts";
import { type InstanceLease, startInstanceLease } from "../../src/ledger/instance-lease.ts";
import type { Hold } from "../../src/ledger/ledger.ts";
import { nanoUsd } from "../../src/money/nano-usd.ts";
import { admittedEvent, outcome } from "../ledger/fixture.ts";

const [url, dataDir, instanceId, ttlMs] = process.argv.slice(2);
if (url === undefined || dataDir === undefined || instanceId === undefined) throw new Error("too few arguments");

const say = (line: string) => writeSync(1, `${line}\n`);
const db = createDatabase(
	{ clock: systemClock, log: silentLog },
	{ url, applicationName: `lease child ${instanceId}` },
);
const start = (id: string) =>
	startInstanceLease(
		{
			db,
			clock: systemClock,
			log: silentLog,
			apply: () => {},
			reset: () => {},
			onDiskFailed: (error) => {
				throw error;
			},
		},
		{ instanceId: id, dataDir, mode: "process", leaseTtlMs: Number(ttlMs ?? 30_000), flushIntervalMs: 20 },
	);
const instances = new Map<string, InstanceLease>();
for (const id of instanceId.split(",")) instances.set(id, await start(id));
const foremost = instances.get(instanceId.split(",", 1)[0] as string) as InstanceLease;
const instanceOf = (request: string) => instances.get(request.slice(request.lastIndexOf("-") + 1)) ?? foremost;
say(`live ${foremost.present()?.epoch}`);

const holds = new Map<string, Hold>();

async function open(id: string, amount: number): Promise<void> {
	for (;;) {
		const ledger = instanceOf(id).ledger();
		const hold = ledger?.reserve({ ...admittedEvent("acc", "key", newUuid()), reserved: nanoUsd(amount) });
		if (hold) {
			holds.set(id, hold);
			say(`opened ${id}`);
			return;
		}
		if (!ledger || (await ledger.draw({ account: "acc", key: "key" }, nanoUsd(amount)))) {
			say(`refused ${id}`);
			return;
		}
	}
}

for await (const line of createInterface({ input: process.stdin })) {
	const [command, id = "", first, second] = line.split(" ");
	const hold = holds.get(id);
	if (command === "open") await open(id, Number(first));
	else if (command === "progress" && hold) {
		const progress = {
			delivered: nanoUsd(Number(first)),
			bound: nanoUsd(Number(second)),
			promptTokens: 1,
			completionTokens: 1,
		};
		hold.ledger.progress(hold, progress);
		say(`progressed ${id}`);
	} else if (command === "settle" && hold) {
		hold.ledger.settle(hold, outcome(Number(first)));
		say(`settled ${id}`);
	} else if (command === "stop") {
		say(`stopped ${await foremost.stop(Number(id || 5_000))}`);
		break;
	}
}
await db.end();
process.exit(0);
