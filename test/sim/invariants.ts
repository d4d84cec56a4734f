import type { Ledger } from "../../src/ledger/ledger.ts";
import type { BudgetShortage, Slice } from "../../src/ledger/slices.ts";
import { budgetsOf, instanceKey, leaseKey, type ModelLease } from "./model-store.ts";
import type { SimProcess } from "./process.ts";
import { type PendingDraw, type RequestRecord, Violation, type World } from "./world.ts";

/** Milliseconds without faults after which old leases have ended and restarts are complete. */
const CALM_MS = 12_000;
/** Milliseconds after a row's unlock in which retries may still delay the account. */
const AFTER_HOLD_MS = 1_500;

/** Caches keys, because building and hashing them took most of a step's time. */
const keys = new WeakMap<object, string>();

function keyOf(of: object, budget: string, instance: string, epoch: number): string {
	let key = keys.get(of);
	if (key === undefined) {
		key = leaseKey(budget, instance, epoch);
		keys.set(of, key);
	}
	return key;
}

const restOf = (lease: ModelLease) => lease.granted - lease.returned - lease.settled;

/** Checks the invariants after each step; those that only the database can break, only after its statements. */
export function checkStep(world: World): void {
	if (world.storeChanged) checkBudgets(world);
	world.storeChanged = false;
	checkMemory(world);
	watchDraws(world);
}

function watchDraws(world: World): void {
	const now = new Map<SimProcess, Map<string, number>>();
	for (const draw of world.draws) {
		const { process, budgets, least } = draw;
		// The dead process's epoch gets no more answers, but its ledger is kept until the end of the run.
		if (process.dead) {
			world.draws.delete(draw);
			continue;
		}
		const known = now.get(process) ?? new Map<string, number>();
		now.set(process, known);
		for (const budget of budgets) {
			// If a budget had no credit at some moment of the draw, every refusal is correct.
			const before = least.get(budget) ?? 0;
			if (before <= 0) continue;
			const covered = known.get(budget) ?? reachableCredit(world, budget, process);
			known.set(budget, covered);
			if (covered < before) least.set(budget, covered);
		}
	}
}

/** True if no fault has happened since shortly before `sinceMs`. */
export const isCalm = (world: World, sinceMs: number) =>
	!world.stormy &&
	world.failovers === 0 &&
	sinceMs - CALM_MS >= world.lastFaultMs &&
	world.hosts.every(({ process }) => process !== undefined);

/** True if a row of the account was locked after `sinceMs` or shortly before. */
export function hadHeldRows({ heldRows, timeline }: World, account: string, sinceMs: number): boolean {
	const held = heldRows.get(account);
	return held !== undefined && (held.rows > 0 || held.untilMs + AFTER_HOLD_MS > Math.min(sinceMs, timeline.nowMs()));
}

/** Checks that no budget is overspent, and that every nano-dollar is accounted for exactly once. */
function checkBudgets({ model, ceilings, mayWriteOff }: World): void {
	const drawn = new Map<string, number>();
	for (const lease of model.leases.values()) {
		const rest = restOf(lease);
		if (rest < 0)
			throw new Violation(`lease ${lease.budget} of ${lease.instance} spent ${-rest} more than it was granted`);
		const part = lease.state === "open" ? lease.granted - lease.returned : lease.settled;
		drawn.set(lease.budget, (drawn.get(lease.budget) ?? 0) + part);
	}
	for (const budget of model.budgets.values()) {
		if (budget.drawn !== (drawn.get(budget.id) ?? 0)) {
			throw new Violation(`budget ${budget.id} has drawn ${budget.drawn}, its leases ${drawn.get(budget.id) ?? 0}`);
		}
		const paidIn = () =>
			model.entries.reduce((sum, entry) => sum + (entry.account === budget.id ? entry.amount : 0), 0);
		// A day's cap is that of the day's first request, or a later change of it.
		if (!ceilings.has(budget.id) && budget.id.includes(":"))
			ceilings.set(budget.id, budget.limit ?? Number.POSITIVE_INFINITY);
		const ceiling = budget.kind === "account" ? paidIn() : (ceilings.get(budget.id) ?? Number.POSITIVE_INFINITY);
		if (budget.drawn > ceiling) throw new Violation(`budget ${budget.id} has drawn ${budget.drawn} of ${ceiling}`);
		if (budget.writtenOff > 0 && !mayWriteOff)
			throw new Violation(`budget ${budget.id} wrote off ${budget.writtenOff}`);
	}
}

/** Checks that the free, reserved and unflushed amounts of each instance fit in its leases. */
function checkMemory(world: World): void {
	const { model, hosts, pendingCharges, overtaken } = world;
	for (const host of hosts) {
		for (const process of [host.process, ...host.others]) {
			if (!process || process.dead) continue;
			for (const ledger of process.ledgers) {
				// Skips ledgers that still spend grants which the database has lost.
				if (overtaken.has(ledger)) continue;
				if (model.instances.get(instanceKey(host.id, ledger.epoch))?.state === "left") {
					if (ledger !== process.instanceLease?.present()) process.ledgers.delete(ledger);
					continue;
				}
				for (const slice of ledger.slices()) {
					const { budget, free, held, unacknowledged, returning } = slice;
					if (Math.min(free, held, unacknowledged, returning) < 0)
						throw new Violation(`a slice of ${budget} is negative`);
					const key = keyOf(slice, budget, host.id, ledger.epoch);
					const lease = model.leases.get(key);
					const rest = lease ? restOf(lease) : 0;
					// Charges of a dead epoch are not those of a new epoch to which the server assigned the same number.
					const pending = world.goesBack && world.failovers > 0 ? 0 : (pendingCharges.get(key) ?? 0);
					if (free + held + pending > rest) {
						throw new Violation(
							`${process.name} has ${free} free, ${held} held and ${pending} charged of ${budget}, its lease says ${rest}`,
						);
					}
				}
			}
		}
	}
}

/**
 * Most that `asking` could reserve of a budget if every live instance returned its idle credit. Counts the unreserved
 * amounts of a dead process until its lease is known to be over, and again when its next epoch returns them. Does not
 * count them if the process had answered the last recall of `asking`: answers are sent in order, and a crash loses the
 * later ones.
 */
export function reachableCredit(world: World, id: string, asking: SimProcess): number {
	const { model, pendingCharges } = world;
	const budget = model.budgets.get(id);
	if (!budget || budget.limit === null) return Number.POSITIVE_INFINITY;
	let covered = Math.max(0, budget.limit - budget.drawn);
	const asked = model.recalls.findLast((recall) => recall.budget === id && recall.instance === asking.host.id)?.ticket;
	const hasAnswered = ({ recalled }: ModelLease) => asked !== undefined && recalled >= asked;
	for (const lease of model.leases.of(id)) {
		if (lease.state !== "open" || !model.mayComeBack(lease)) continue;
		const rest = restOf(lease);
		const owner = ledgerOf(world, lease.instance, lease.epoch);
		const key = keyOf(lease, id, lease.instance, lease.epoch);
		const pending = pendingCharges.get(key) ?? 0;
		if (!owner) {
			if (!hasAnswered(lease)) covered += Math.max(0, rest - pending - (world.heldAtDeath.get(key) ?? 0));
			continue;
		}
		const slice = sliceOf(owner.ledger, id);
		covered += rest - pending - (slice ? takenOf(slice, rest, owner.process === asking) : 0);
	}
	return covered;
}

export function ledgerOf(
	{ hosts }: Pick<World, "hosts">,
	id: string,
	epoch: number,
): { ledger: Ledger; process: SimProcess } | undefined {
	const host = hosts.find((one) => one.id === id);
	if (!host) return undefined;
	const first = host.process && ledgerIn(host.process, epoch);
	if (first) return first;
	for (const process of host.others) {
		const found = ledgerIn(process, epoch);
		if (found) return found;
	}
	return undefined;
}

function ledgerIn(process: SimProcess, epoch: number): { ledger: Ledger; process: SimProcess } | undefined {
	if (process.dead) return undefined;
	const present = process.instanceLease?.present();
	if (present?.epoch === epoch) return { ledger: present, process };
	for (const ledger of process.ledgers) if (ledger.epoch === epoch) return { ledger, process };
	return undefined;
}

/**
 * Amount of a slice that is reserved, promised to a request, or granted and in transit to waiting requests. Other
 * instances' waiting requests also get arriving credit first.
 */
function takenOf(slice: Readonly<Slice>, rest: number, isOwn: boolean): number {
	const { free, held, unacknowledged, returning, promised, waiters } = slice;
	const onItsWay = Math.max(0, rest - free - held - unacknowledged - returning);
	const waitedFor = waiters.reduce((sum, { need }) => sum + need, 0);
	if (isOwn) return held + Math.min(promised, free) + Math.min(onItsWay, waitedFor);
	return held + Math.min(free + onItsWay, Math.min(promised, free) + waitedFor);
}

function sliceOf(ledger: Ledger, budget: string): Readonly<Slice> | undefined {
	for (const slice of ledger.slices()) if (slice.budget === budget) return slice;
	return undefined;
}

/** Checks a refusal: credit must have been short at some moment of the call, whatever failed in between. */
export function checkShortage(world: World, draw: PendingDraw, shortage: BudgetShortage): void {
	// After a failover, it is unknown what epochs of the previous server hold.
	if (world.failovers > 0) return;
	world.count("refusals checked");
	const least = Math.min(draw.least.get(shortage.budget) ?? 0, reachableCredit(world, shortage.budget, draw.process));
	if (least >= shortage.needNanoUsd) {
		throw new Violation(
			`${shortage.needNanoUsd} of ${shortage.budget} were refused since ${draw.startedMs.toFixed(1)}, though ${least} were there all the time`,
		);
	}
}

/** Checks that memory and database agree to the nano-dollar at rest, so that no credit is stranded. */
export function checkAtRest(world: World): void {
	for (const host of world.hosts) {
		const ledger = host.process?.instanceLease?.present();
		if (!ledger) throw new Violation(`${host.id} did not come back`);
		const slices = new Map([...ledger.slices()].map((slice) => [slice.budget, slice]));
		for (const lease of world.model.leases.values()) {
			if (lease.instance !== host.id || lease.epoch !== ledger.epoch || lease.state !== "open") continue;
			const slice = slices.get(lease.budget);
			const known = slice ? slice.free + slice.held + slice.unacknowledged + slice.returning : 0;
			// A dead epoch's grant stays held until the epoch with the same number ends.
			if (known < restOf(lease) && world.goesBack) continue;
			// This epoch keeps grants that the server lost; charges above its lease are settled as late.
			if (known > restOf(lease) && world.unaware.has(ledger)) continue;
			if (known !== restOf(lease)) {
				throw new Violation(`${host.id} knows of ${known} of ${lease.budget}, its lease says ${restOf(lease)}`);
			}
		}
	}
}

/** Checks the books after every process has stopped and all journals were replayed. */
export function checkEnd(world: World): void {
	const { model } = world;
	checkBudgets(world);
	for (const lease of model.leases.values()) {
		if (lease.state === "open") throw new Violation(`the lease of ${lease.budget} by ${lease.instance} is still open`);
	}
	if (model.reservations.size > 0) throw new Violation("requests are still shown as running");
	for (const host of world.hosts) if (!host.disk.isEmpty()) throw new Violation(`${host.id} still has a journal`);
	const charged = new Map<string, number>();
	for (const row of model.usage.values()) {
		for (const id of budgetsOf(row)) charged.set(id, (charged.get(id) ?? 0) + row.charged);
	}
	for (const budget of model.budgets.values()) {
		const sum = charged.get(budget.id) ?? 0;
		if (sum !== budget.drawn)
			throw new Violation(`budget ${budget.id} has drawn ${budget.drawn}, its requests cost ${sum}`);
	}
	checkProjects(world);
	for (const record of world.requests.values()) checkRequest(world, record);
}

/** Checks that charges of a project's keys were drawn from the project, whichever budgets the requests name. */
function checkProjects({ model, keys }: World): void {
	const charged = new Map<string, number>();
	for (const row of model.usage.values()) {
		const project = keys.get(row.key)?.project;
		// Skips requests attested as lost, whose rows do not contain their budgets.
		if (project && row.card !== "") charged.set(project, (charged.get(project) ?? 0) + row.charged);
	}
	for (const [project, sum] of charged) {
		const drawn = model.budgets.get(project)?.drawn;
		if (drawn !== sum) throw new Violation(`project ${project} has drawn ${drawn}, its keys cost ${sum}`);
	}
}

function checkRequest(world: World, record: RequestRecord): void {
	const row = world.model.usage.get(record.id);
	if (record.excused) return;
	if (record.admitAppended && !row)
		throw new Violation(`request ${record.id} stands in the journal and was never recorded`);
	if (!row) return;
	const cost = row.charged + row.off;
	if (record.settled) {
		const { charged, off } = record.settled;
		if (cost !== charged + off)
			throw new Violation(`request ${record.id} was settled at ${charged}+${off}, recorded at ${cost}`);
		if (row.charged !== charged && !world.mayWriteOff) throw new Violation(`request ${record.id} was written off`);
		return;
	}
	if (row.charged > record.delivered) throw new Violation(`request ${record.id} paid for more than it received`);
	const due = Math.min(record.known, row.reserved);
	if (cost < due && !world.mayWriteOff)
		throw new Violation(`request ${record.id} had received ${record.known} for sure, recorded are ${cost}`);
}
