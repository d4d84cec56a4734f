import type { ControlEntry } from "../../src/cluster/control-log.ts";
import type { Hold, Ledger } from "../../src/ledger/ledger.ts";
import { hadHeldRows } from "./invariants.ts";
import { budgetsOf, leaseKey, type ModelStore } from "./model-store.ts";
import type { SimProcess } from "./process.ts";
import { type RequestRecord, Violation, type World } from "./world.ts";

const CUTS_MEAN_MS = 500;

/** Total grants of each lease of a budget at the time when its limit was lowered. */
type GrantedBefore = ReadonlyMap<string, number>;

/** The last lowering of a limit that a process has applied, and its reservations after that. */
export interface Lowered {
	readonly grantedBefore: GrantedBefore;
	readonly reserved: { readonly hold: Hold; readonly record: RequestRecord }[];
}

/** Whenever a budget's limit is lowered, notes each lease's total grants, under the control entry's number. */
export function watchLowerings({ log, budgets, leases }: ModelStore): ReadonlyMap<number, GrantedBefore> {
	const lowerings = new Map<number, GrantedBefore>();
	const limits = new Map<string, number | null>();
	const push = log.push.bind(log);
	log.push = (...entries) => {
		for (const { kind, subject, seq, payload } of entries) {
			if (kind !== "budget") continue;
			const before = limits.get(subject) ?? Number.POSITIVE_INFINITY;
			const limit = budgets.get(subject)?.limit ?? null;
			if (payload.lowered === true || (limits.has(subject) && limit !== null && limit < before)) {
				const own = [...leases].filter(([, { budget }]) => budget === subject);
				lowerings.set(seq, new Map(own.map(([key, { granted }]) => [key, granted])));
			}
			limits.set(subject, limit);
		}
		return push(...entries);
	};
	return lowerings;
}

/** Repeatedly lowers a limit by a little, so that credit is left, and raises some limits. */
export function lowerLimits(world: World, untilMs: number): void {
	const { random, timeline, model, database } = world;
	const cut = (): void => {
		if (timeline.nowMs() >= untilMs) return;
		timeline.after(-Math.log(1 - random.fraction()) * CUTS_MEAN_MS, "operator: cut", cut);
		const budget = random.pick([...model.budgets.values()].filter(({ id }) => !id.includes(":")));
		const by = random.chance(0.3) ? random.int(100, 400) : -random.int(1, 30);
		if (!database.up || hadHeldRows(world, budget.account, timeline.nowMs())) return;
		const moved = () => world.count("money moved");
		const present = () => model.budgets.get(budget.id)?.limit ?? model.daysOf(budget.id)[0]?.limit ?? 500;
		if (budget.kind === "account") database.adjust(budget.id, () => by, moved);
		else database.setCap(budget.id, () => Math.max(0, present() + by), moved);
	};
	cut();
}

export function recordLowering(world: World, process: SimProcess, { kind, subject, seq }: ControlEntry): void {
	const grantedBefore = kind === "budget" ? world.lowerings.get(seq) : undefined;
	if (!grantedBefore) return;
	world.count("lowered");
	process.lowered.set(subject, { grantedBefore, reserved: [] });
}

/** Checks, for each budget, that credit reserved after an applied lowering was also granted after it. */
export function checkLowered(
	world: World,
	process: SimProcess,
	ledger: Ledger,
	record: RequestRecord,
	hold: Hold,
): void {
	// Skips the check after a failover, because grants by an earlier server are not recorded on this one.
	if (world.failovers > 0) return;
	for (const budget of budgetsOf(record)) {
		const lowered = process.lowered.get(budget);
		if (!lowered) continue;
		world.count("admitted behind a lowered limit");
		lowered.reserved.push({ hold, record });
		const key = leaseKey(budget, process.host.id, ledger.epoch);
		const granted = (world.model.leases.get(key)?.granted ?? 0) - (lowered.grantedBefore.get(key) ?? 0);
		let reserved = 0;
		for (const one of lowered.reserved) {
			if (one.record.epoch === ledger.epoch) reserved += one.record.settled?.charged ?? one.hold.reserved;
		}
		if (reserved > granted) {
			throw new Violation(
				`${process.name} has reserved ${reserved} of ${budget} since its limit was lowered, of which it was granted ${granted}`,
			);
		}
	}
}
