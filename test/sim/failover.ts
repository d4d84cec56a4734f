import { ledgerOf } from "./invariants.ts";
import type { SimProcess } from "./process.ts";
import { addPending, type World } from "./world.ts";

/** Milliseconds that are longer than any statement, so that an answer this late was given after the snapshot. */
const NOTICED_MS = 2_000;

/** True if the process knows a server position that is later than the snapshot to which the server went back. */
const canNotice = ({ goesBack, copiedMs }: Pick<World, "goesBack" | "copiedMs">, { heardMs }: SimProcess): boolean =>
	!goesBack || heardMs > copiedMs + NOTICED_MS;

/** Ids of the requests whose settlement the books contain. A request that was only attested as lost has none. */
export const settledRequestIds = ({ model }: Pick<World, "model">): ReadonlySet<string> =>
	new Set([...model.usage].filter(([, { card }]) => card !== "").map(([id]) => id));

/**
 * Marks what a lagging standby may lose: revocations that it lacks, and usage of ended epochs. Live epochs send the
 * usage that it lacks again.
 */
export function excuseLostData(
	world: Omit<World, "database">,
	knownBefore: ReadonlySet<string>,
	revoked: ReadonlySet<string>,
): void {
	world.failovers += 1;
	// Instances may still spend grants that the new server lacks, so charges may be written off.
	world.mayWriteOff = true;
	for (const key of world.revokedForSure) if (!revoked.has(key)) world.revokedForSure.delete(key);
	for (const { id, limit, drawn } of world.model.budgets.values())
		if (world.ceilings.has(id)) world.ceilings.set(id, Math.max(drawn, limit ?? Number.POSITIVE_INFINITY));
	// If the new server lacks a daily budget, the budget is created again.
	for (const id of world.ceilings.keys())
		if (id.includes(":") && !world.model.budgets.has(id)) world.ceilings.delete(id);
	const settled = settledRequestIds(world);
	for (const id of knownBefore) {
		const record = world.requests.get(id);
		if (!record || settled.has(id)) continue;
		world.count("usage that the new server does not know");
		const owner = ledgerOf(world, record.host.id, record.epoch);
		const wasFull = world.goesBack && record.host.fullUntilMs > world.copiedMs;
		if (owner && canNotice(world, owner.process) && !wasFull) record.forgotten = true;
		else record.excused = true;
	}
	overtake(world);
}

/** Live epochs send their charges again. The server may assign the numbers of ended epochs again. */
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
