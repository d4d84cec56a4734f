import { assert } from "../base/assert.ts";
import { type Clock, sleep, withDeadline } from "../base/clock.ts";
import { Fault } from "../base/fault.ts";
import type { Log } from "../base/log.ts";
import { SlotPool } from "../base/slot-pool.ts";
import { addUsd, minUsd, type NanoUsd, subUsd, ZERO_USD } from "../money/nano-usd.ts";
import type { AdmittedEvent, SettledEvent } from "./event.ts";
import { HoldOf } from "./hold.ts";
import type { Journal, JournalMode } from "./journal.ts";
import { createJournalCompactor } from "./journal-compactor.ts";
import { isSystemError } from "./journal-disk.ts";
import { crashedEvent } from "./journal-reader.ts";
import { type Outcome, type Progress, settledEvent } from "./outcome.ts";
import { holdCredit } from "./slice.ts";
import type { BudgetShortage, Slice, Slices } from "./slices.ts";
import { createUnacknowledged } from "./unacknowledged.ts";
import type { Writer } from "./writer.ts";

export type Hold = HoldOf<Ledger>;

export type DrawRequest = Pick<AdmittedEvent, "account" | "key" | "budgets">;

export type Ledger = ReturnType<typeof createLedger>;
/** Shared by requests that reserve only from account and key, so that no list is allocated per request. */
const NO_SLICES: readonly Slice[] = [];

/**
 * The credit of one epoch. Requests reserve synchronously from slices in memory, after a record in the journal. Each is
 * settled once, and settlements are written to Postgres in the background.
 */
export function createLedger(
	deps: { slices: Slices; journal: Journal; writer: Writer; close: () => Promise<void>; clock: Clock; log: Log },
	options: { epoch: number; mode: JournalMode },
) {
	const { slices, journal, writer, clock, log } = deps;
	const { mode } = options;
	const running = new SlotPool<Hold>();
	/** In mode `remote`: promises of settlements for which a client waits. */
	const settling = new WeakMap<Hold, Promise<void>>();
	const compactJournal = createJournalCompactor({ journal, log }, running);
	const unacknowledged = createUnacknowledged({ slices, journal });
	const { acknowledge } = unacknowledged;
	let retired = false;
	/** True once the journal is closed. Requests that still run then count as crashed: the replay settles them. */
	let closed = false;
	let onIdle: (() => void) | undefined;

	/**
	 * Charges a hold and frees its rest. If the journal lacks the settlement (`journalled` is false), the rest stays held
	 * until Postgres has it. After a crash, the replay would charge the request by its last progress.
	 */
	function release(hold: Hold, slice: Slice, charged: NanoUsd, journalled: boolean): void {
		slice.held = subUsd(slice.held, charged);
		slice.unacknowledged = addUsd(slice.unacknowledged, charged);
		slice.burntSinceTick += charged;
		if (journalled) slices.leave(slice, subUsd(hold.reserved, charged), hold.lowering);
	}

	/** Reserves the cost above the reserved amount from free credit. Returns the part that is not covered. */
	function extend(hold: Hold, cost: NanoUsd): NanoUsd {
		const excess = subUsd(cost, hold.reserved);
		const covered = minUsd(excess, freeCredit(hold));
		for (const slice of [hold.account, hold.key, ...hold.further]) holdCredit(slice, covered);
		hold.reserved = addUsd(hold.reserved, covered);
		log.warn("a request cost more than its bound", {
			request: hold.admitted.id,
			model: hold.admitted.model,
			excess,
			covered,
		});
		return subUsd(excess, covered);
	}

	/** Journals a settlement. False if that failed: after a crash, the last progress would decide the charge. */
	function settleInJournal(event: SettledEvent): boolean {
		try {
			journal.settle(JSON.stringify(event));
			return true;
		} catch (error) {
			log.error("a settlement could not be journalled", { request: event.id, error });
			return false;
		}
	}

	/** Slices of the request's budgets other than account and key; undefined if one has too little free credit. */
	function furtherSlices(budgets: readonly string[] | undefined, amount: NanoUsd): readonly Slice[] | undefined {
		if (budgets === undefined) return NO_SLICES;
		const found: Slice[] = [];
		for (const budget of budgets) {
			const slice = slices.get(budget);
			if (!slice || slice.free < amount) return undefined;
			found.push(slice);
		}
		return found;
	}

	/** Returns the settlement that a later replay of the journal will compute. */
	function leaveToReplay(hold: Hold): SettledEvent {
		const event = crashedEvent({ ...hold.admitted, reserved: hold.reserved }, hold.progress, clock.wallMs());
		hold.state = event.charged > 0 ? "posted" : "voided";
		log.warn("a request ended after the journal was closed; charging the amount of its last journal record", {
			request: event.id,
			charged: event.charged,
		});
		ended(hold);
		return event;
	}

	const closedJournal = () => unavailable("the journal is closed");
	const notOnRecord = () => Promise.reject(closedJournal());

	function ended(hold: Hold): void {
		running.release(hold.runningSlot, hold);
		writer.ended(hold);
		if (running.size === 0) onIdle?.();
	}

	/** Why no request can reserve now, regardless of credit; undefined if requests can. */
	function problem(): string | undefined {
		return writer.isFull() ? "too many settlements wait for the database" : journal.problem();
	}

	const ledger = {
		epoch: options.epoch,
		problem,

		/**
		 * Reserves the amount from all of the request's budgets or from none, synchronously. Undefined if one of them has
		 * too little free credit: then call `draw` and try again. Throws a Fault if the journal or the queue is full.
		 */
		reserve(admitted: AdmittedEvent): Hold | undefined {
			const amount = admitted.reserved;
			if (retired) throw unavailable("this epoch of the instance has ended");
			const account = slices.get(admitted.account);
			const key = slices.get(admitted.key);
			if (!account || !key || account.free < amount || key.free < amount) return undefined;
			const further = furtherSlices(admitted.budgets, amount);
			if (!further) return undefined;
			const what = problem();
			if (what !== undefined) throw unavailable(what);
			const segment = admitToJournal(journal, admitted);
			holdCredit(account, amount);
			holdCredit(key, amount);
			for (const slice of further) holdCredit(slice, amount);
			compactJournal();
			const isAwaited = mode === "remote";
			const lowering = slices.lowerings();
			const hold = new HoldOf(ledger, admitted, account, key, further, lowering, segment, isAwaited);
			hold.runningSlot = running.take(hold);
			writer.open(hold, isAwaited);
			const nowMs = clock.monotonicMs();
			slices.topUp(account, nowMs);
			slices.topUp(key, nowMs);
			for (const slice of further) slices.topUp(slice, nowMs);
			return hold;
		},

		/**
		 * Draws the credit that `reserve` lacked. Null: try `reserve` again; otherwise the first budget with too little.
		 * Draws from the account after the caps, so that a request that a cap refuses takes no credit from the account's
		 * other requests. Draws from all caps concurrently, so that several caps take one round trip.
		 */
		draw: ({ account, key, budgets }: DrawRequest, amount: NanoUsd): Promise<BudgetShortage | null> =>
			slices.draw([budgets === undefined ? key : [key, ...budgets], account], amount),

		/** Records in the journal, before a part of the answer is sent, the most that the client will then have received. */
		progress(hold: Hold, progress: Progress) {
			assert(hold.state === "held", "only a running request delivers");
			assert(progress.delivered <= progress.bound, "a bound is not below what was delivered");
			if (progress.bound <= hold.bound) return;
			if (closed) throw closedJournal();
			journal.progress(JSON.stringify({ id: hold.admitted.id, ...progress }));
			hold.bound = progress.bound;
			hold.progress = progress;
		},

		/** Ends a hold and charges its cost. On return the settlement is in the journal. */
		settle(hold: Hold, outcome: Outcome): SettledEvent {
			assert(hold.state === "held", "a hold is settled once");
			if (closed) return leaveToReplay(hold);
			const { costNanoUsd } = outcome;
			const off = costNanoUsd > hold.reserved ? extend(hold, costNanoUsd) : ZERO_USD;
			const charged = subUsd(costNanoUsd, off);
			const event = settledEvent(hold.admitted, outcome, hold.reserved, charged, off);
			hold.state = charged > 0 ? "posted" : "voided";
			const journalled = settleInJournal(event);
			release(hold, hold.account, charged, journalled);
			release(hold, hold.key, charged, journalled);
			for (const slice of hold.further) release(hold, slice, charged, journalled);
			const posted = mode === "remote" ? Promise.withResolvers<void>() : undefined;
			const nowMs = clock.monotonicMs();
			writer.settle(event, acknowledge, unacknowledged.add(hold, charged, journalled, posted), nowMs);
			if (posted) {
				settling.set(hold, posted.promise);
				writer.hurry();
			}
			slices.settled(hold.account, nowMs);
			slices.settled(hold.key, nowMs);
			for (const slice of hold.further) slices.settled(slice, nowMs);
			ended(hold);
			return event;
		},

		/** Promise to await before sending bytes whose cost was recorded; undefined if the record is already durable. */
		durable(hold: Hold): Promise<void> | undefined {
			if (closed) return notOnRecord();
			if (mode === "process") return undefined;
			if (mode === "host") return journal.durable();
			writer.hurry();
			return hold.known;
		},

		/** Promise to await before sending the last bytes; undefined if the settlement is already durable. */
		settledDurable(hold: Hold): Promise<void> | undefined {
			if (closed) return notOnRecord();
			return mode === "host" ? journal.durable() : settling.get(hold);
		},
		answer: slices.answer,
		limitChanged: slices.limitChanged,
		/** All slices of this instance, for the checks of the books and for tests. */
		slices: slices.all,
		/** After the database server changed: sends the journal's settlements again. Returns how many the server lacked. */
		sendAgain: () => writer.sendAgain(journal.settlements(writer.waiting)),
		heldOf: (budget: string): NanoUsd => slices.get(budget)?.held ?? ZERO_USD,

		view: () => ({
			epoch: options.epoch,
			running: running.size,
			queued: writer.queued(),
			oldestUnflushedMs: writer.oldestAgeMs(),
			journal: journal.size(),
			/** Sums over accounts' slices, at most a second old. Keys' slices are left out: they hold the same money. */
			totals: slices.totals(),
		}),

		/** Waits for running requests until the deadline, then closes the leases. True if Postgres has all settlements. */
		async retire(deadlineMs: number, onHandedBack?: () => void): Promise<boolean> {
			retired = true;
			const giveUpAtMs = clock.monotonicMs() + deadlineMs;
			const late = () => new Error("not in time");
			const inTime = (work: Promise<unknown>) =>
				withDeadline(clock, work, Math.max(0, giveUpAtMs - clock.monotonicMs()), late).then(
					() => true,
					() => false,
				);
			// Starts to return idle credit before the last requests end, because other instances may need it.
			void slices.handBack().then((arrived) => arrived && onHandedBack?.());
			const idle = running.size === 0 ? Promise.resolve() : new Promise<void>((resolve) => (onIdle = resolve));
			const finished = await inTime(idle);
			slices.stop();
			// Requests that wait for credit now get an error and settle in the next turn of the event loop.
			if (!finished) await sleep(clock, 0);
			// Closes the leases after the last settlement; before, a running request's spent credit would become available.
			const handedIn = finished && (await inTime(writer.drain()));
			const clean = handedIn && (await inTime(deps.close()));
			writer.stop();
			// The journal stays on disk: the next start of this instance replays the settlements that Postgres lacks.
			closed = true;
			unacknowledged.giveUp(closedJournal());
			for (const hold of running) hold.giveUp(closedJournal());
			if (clean) journal.destroy();
			else journal.close();
			return clean;
		},
	};
	return ledger;
}

/** Credit that the hold's request can still reserve on this instance: the least of its budgets. */
export function freeCredit({ account, key, further }: Pick<Hold, "account" | "key" | "further">): NanoUsd {
	let free = minUsd(account.free, key.free);
	for (const slice of further) free = minUsd(free, slice.free);
	return free;
}

function admitToJournal(journal: Journal, event: AdmittedEvent): number {
	try {
		return journal.admit(JSON.stringify(event));
	} catch (error) {
		throw isSystemError(error) ? unavailable("the journal cannot be written", error) : error;
	}
}

function unavailable(detail: string, cause?: unknown): Fault {
	const message = "The service cannot record usage right now.";
	return new Fault("service_unavailable", message, { retryAfterS: 2, private: detail, cause });
}
