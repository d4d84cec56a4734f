import { ledgerOf } from "./invariants.ts";
import type { SimProcess } from "./process.ts";
import { addPending, type World } from "./world.ts";

/** Longer than a statement takes, so that the answer was given after the snapshot. */
const NOTICED_MS = 2_000;

/** True if the process knows a position of the server from after the snapshot that the server went back to. */
const canNotice = ({ goesBack, copiedMs }: Pick<World, "goesBack" | "copiedMs">, { heardMs }: SimProcess): boolean =>
	!goesBack || heardMs > copiedMs + NOTICED_MS;

/** Requests whose settlement is in the books; one that was attested as lost has none. */
export const settledIn = ({ model }: Pick<World, "model">): ReadonlySet<string> =>
	new Set([...model.usage].filter(([, { card }]) => card !== "").map(([id]) => id));

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
	// Instances may still spend grants that the new server has forgotten.
	world.mayWriteOff = true;
	for (const key of world.revokedForSure) if (!revoked.has(key)) world.revokedForSure.delete(key);
	for (const { id, limit, drawn } of world.model.budgets.values())
		if (world.ceilings.has(id)) world.ceilings.set(id, Math.max(drawn, limit ?? Number.POSITIVE_INFINITY));
	// A daily budget that the new server has forgotten is created again.
	for (const id of world.ceilings.keys())
		if (id.includes(":") && !world.model.budgets.has(id)) world.ceilings.delete(id);
	const settled = settledIn(world);
	for (const id of knownBefore) {
		const record = world.requests.get(id);
		if (!record || settled.has(id)) continue;
		world.count("usage that the new server does not know");
		const owner = ledgerOf(world, record.host.id, record.epoch);
		if (owner && canNotice(world, owner.process)) record.forgotten = true;
		else record.excused = true;
	}
	overtake(world);
}

/** Live epochs send their charges again; the numbers of ended epochs may be assigned again. */
function overtake(world: Omit<World, "database">): void {
	for (const host of world.hosts) {
		for (const process of [host.process, ...host.others]) {
			const present = process?.instanceLease?.present();
			for (const ledger of [...(process?.ledgers ?? []), ...(present ? [present] : [])]) {
				world.overtaken.add(ledger);
				if (process && !canNotice(world, process)) world.unaware.add(ledger);
			}
		}
	}
	world.pendingCharges.clear();
	for (const record of world.requests.values()) {
		if (!record.settled || world.model.usage.has(record.id)) continue;
		if (ledgerOf(world, record.host.id, record.epoch)) addPending(world, record, record.settled.charged);
	}
}
