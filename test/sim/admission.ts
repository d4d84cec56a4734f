import { type Admission, createAdmission } from "../../src/admission/admission.ts";
import { createOpenRequests } from "../../src/admission/open-requests.ts";
import { NO_QUANTITIES } from "../../src/admission/price.ts";
import type { Clock } from "../../src/base/clock.ts";
import type { Log } from "../../src/base/log.ts";
import type { Model, RateCard } from "../../src/catalog/model.ts";
import { DEFAULT_LIMITS } from "../../src/catalog/service-limits.ts";
import type { SettledEvent } from "../../src/ledger/event.ts";
import type { DrawRequest, Ledger } from "../../src/ledger/ledger.ts";
import type { BudgetShortage } from "../../src/ledger/slices.ts";
import { createKeyLimits, type KeyLimits } from "../../src/limits/key-limits.ts";
import type { ShareStore } from "../../src/limits/share-store.ts";
import type { NanoUsd } from "../../src/money/nano-usd.ts";
import { sameRates } from "../support/every-rate.ts";
import { checkShortage, hadHeldRows, isCalm, reachableCredit } from "./invariants.ts";
import { checkLowered } from "./lowered.ts";
import { budgetsOf } from "./model-store.ts";
import type { SimProcess } from "./process.ts";
import { DAY_AHEAD_MS, DAY_BEHIND_MS, EPOCH_MS } from "./terms.ts";
import { addPending, NO_LIMITS, type PendingDraw, type RequestRecord, Violation, type World } from "./world.ts";

export type SimAdmission = ReturnType<typeof createSimAdmission>;

/** One nano-dollar per output token, so that a request's token limit is also its cost. */
const card = { id: "m@1", version: 1, ...sameRates(0), output: 1_000 } as unknown as RateCard;
export const MODEL = { id: "m", rateCard: card } as unknown as Model;
export const boundOfAmount = (amount: number) => ({ ...NO_QUANTITIES, completionTokens: amount });

/** The product's admission and key limits on simulated ledgers. Compares their answers with the world's true state. */
export function createSimAdmission(
	world: World,
	processOf: () => SimProcess,
	parts: { clock: Clock; log: Log; shares: ShareStore | undefined },
): { admission: Admission; keyLimits: KeyLimits } {
	const { clock, log, shares } = parts;
	const keyLimits = createKeyLimits({ clock, ...(shares ? { shared: { store: shares, log } } : {}) });
	const admission = createAdmission({
		ledger() {
			const process = processOf();
			const ledger = process.instanceLease?.ledger();
			if (ledger) return watched(world, process, ledger);
			if (isCalm(world, world.timeline.nowMs())) throw new Violation(`${process.name} admits nothing in calm weather`);
			world.count("gate closed");
			return undefined;
		},
		closedReason: () => processOf().instanceLease?.gate.reason(),
		keyLimits,
		limits: () => DEFAULT_LIMITS,
		openRequests: createOpenRequests({ limits: () => ({ openRequestsMax: 100_000, accountShare: 1 }) }),
		clock,
		onSettled: (event) => noteSettled(world, processOf(), event),
	});
	return { admission, keyLimits };
}

function watched(world: World, process: SimProcess, ledger: Ledger): Ledger {
	return {
		...ledger,
		reserve(admitted) {
			const record = world.requests.get(admitted.id);
			if (record) record.epoch = ledger.epoch;
			const hold = ledger.reserve(admitted);
			// If the process died while it wrote the record, its code continues without effect.
			if (!hold || !record || process.dead) return hold;
			record.admitted = true;
			record.budgets = admitted.budgets;
			for (const budget of admitted.budgets ?? []) world.count(`admitted on ${budget.slice(-10)}`);
			world.log?.(
				`${world.timeline.nowMs().toFixed(1)} ${process.name} admitted ${record.id} in epoch ${ledger.epoch}`,
			);
			process.ledgers.add(ledger);
			world.count("admitted");
			if (world.revokedForSure.has(record.key))
				throw new Violation(`${process.name} admitted key ${record.key} after its revocation had returned`);
			checkLimits(world, record);
			checkLowered(world, process, ledger, record, hold);
			return hold;
		},
		draw: (drawing, amount) => drawWatched(world, process, ledger, drawing, amount),
	};
}

/**
 * Checks a key's concurrent and per-minute requests over all instances. After faults, a dead instance's counts may
 * remain or not.
 */
function checkLimits(world: World, record: RequestRecord): void {
	const { hosts, timeline, admissions } = world;
	const id = record.key;
	const { requestsPerMinute, concurrencyMax, tokensPerMinute } = world.keys.get(id)?.limits ?? NO_LIMITS;
	if (world.hadFaults) return;
	if (concurrencyMax !== null) {
		const running = hosts.reduce((sum, { process }) => sum + (process?.keyLimits.running(id) ?? 0), 0);
		if (running > concurrencyMax)
			throw new Violation(`${running} requests of key ${id} run at once, ${concurrencyMax} may`);
	}
	if (requestsPerMinute === null && tokensPerMinute === null) return;
	const recent = (admissions.get(id) ?? []).filter(({ atMs }) => atMs > timeline.nowMs() - 60_000);
	recent.push({ atMs: timeline.nowMs(), record });
	admissions.set(id, recent);
	// The product approximates a sliding minute by two fixed windows, so up to twice the limit is possible.
	if (requestsPerMinute !== null && recent.length > 2 * requestsPerMinute)
		throw new Violation(`${recent.length} requests of key ${id} in a minute, ${requestsPerMinute} may come`);
	// A running request counts with its bound, an ended request with the two tokens that its stream reports.
	const tokens = recent.reduce((sum, { record: { amount, settled } }) => sum + (settled ? 2 : amount), 0);
	if (tokensPerMinute !== null && tokens > 2 * tokensPerMinute)
		throw new Violation(`requests of key ${id} took ${tokens} tokens in a minute, ${tokensPerMinute} may be used`);
}

function noteSettled(world: World, process: SimProcess, event: SettledEvent): void {
	const record = world.requests.get(event.id);
	if (!record || process.dead) return;
	if (record.settled) throw new Violation(`request ${record.id} was settled twice`);
	if (!record.settleAppended && process.host.disk.room < 1_000) record.excused = true;
	record.settled = { charged: event.charged, off: event.off };
	if (!world.model.usage.has(record.id)) addPending(world, record, event.charged);
	// A stopping process closed the journal before this request ended, so it is charged as by a replay after a crash.
	if (event.basis === "recovered") {
		world.count("outlived the journal");
		if (!process.leaving) throw new Violation(`request ${record.id} outlived the journal of a process that goes on`);
	} else if (event.charged + event.off !== record.delivered)
		throw new Violation(`request ${record.id} was not charged what it cost`);
}

/** True if the process's clock differs so far from the database's that the process uses another day's budget. */
export function usesAnotherDay(world: World, { clock }: SimProcess): boolean {
	const aheadMs = clock.wallMs() - EPOCH_MS - world.timeline.nowMs() - world.serverAheadMs;
	return aheadMs > DAY_AHEAD_MS || aheadMs < -DAY_BEHIND_MS;
}

async function drawWatched(
	world: World,
	process: SimProcess,
	ledger: Ledger,
	drawing: DrawRequest,
	amount: NanoUsd,
): Promise<BudgetShortage | null> {
	const { account } = drawing;
	const budgets = budgetsOf(drawing);
	const least = new Map(budgets.map((budget) => [budget, reachableCredit(world, budget, process)]));
	const draw: PendingDraw = { process, budgets, startedMs: world.timeline.nowMs(), least };
	world.draws.add(draw);
	try {
		const shortage = await ledger.draw(drawing, amount);
		if (shortage && !shortage.untimely) checkShortage(world, draw, shortage);
		return shortage;
	} catch (error) {
		// Only a fault that locks this account's rows, or affects every account, may keep a request from its credit.
		if (
			isCalm(world, draw.startedMs) &&
			!(drawing.budgets && usesAnotherDay(world, process)) &&
			!hadHeldRows(world, account, draw.startedMs)
		)
			throw new Violation(`${process.name} got no credit of ${account} in calm weather: ${String(error)}`);
		world.count("unproved");
		throw error;
	} finally {
		world.draws.delete(draw);
	}
}
