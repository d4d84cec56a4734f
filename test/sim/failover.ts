import { ledgerOf } from "./invariants.ts";
import { addPending, type World } from "./world.ts";

/**
 * Data that a lagging standby may lose: revocations that it lacks, and usage of ended epochs. Live epochs send again
 * what it lacks.
 */
export function keepWhatIsLost(
	world: Omit<World, "database">,
	knownBefore: ReadonlySet<string>,
	revoked: ReadonlySet<string>,
): void {
	world.failovers += 1;
	// Forgotten grants are still spent by their holders.
	world.mayWriteOff = true;
	for (const key of world.revokedForSure) if (!revoked.has(key)) world.revokedForSure.delete(key);
	for (const { id, limit, drawn } of world.model.budgets.values())
		if (world.ceilings.has(id)) world.ceilings.set(id, Math.max(drawn, limit ?? Number.POSITIVE_INFINITY));
	for (const id of knownBefore) {
		const record = world.requests.get(id);
		if (!record || world.model.usage.has(id)) continue;
		world.count("usage that the new server does not know");
		if (ledgerOf(world, record.host.id, record.epoch)) record.forgotten = true;
		else record.excused = true;
	}
	overtake(world);
}

/** Live epochs send their charges again; numbers of ended ones may be given again. */
function overtake(world: Omit<World, "database">): void {
	for (const host of world.hosts) {
		for (const process of [host.process, ...host.others]) {
			const present = process?.instanceLease?.present();
			if (present) world.overtaken.add(present);
			for (const ledger of process?.ledgers ?? []) world.overtaken.add(ledger);
		}
	}
	world.pendingCharges.clear();
	for (const record of world.requests.values()) {
		if (!record.settled || world.model.usage.has(record.id)) continue;
		if (ledgerOf(world, record.host.id, record.epoch)) addPending(world, record, record.settled.charged);
	}
}
