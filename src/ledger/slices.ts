import { assert } from "../base/assert.ts";
import type { Clock } from "../base/clock.ts";
import { sleep } from "../base/clock.ts";
import type { FaultDetail } from "../base/fault.ts";
import { Fault } from "../base/fault.ts";
import type { Log } from "../base/log.ts";
import type { NanoUsd } from "../money/nano-usd.ts";
import { addUsd, subUsd } from "../money/nano-usd.ts";
import type { Shortage, Slice, Waiter } from "./slice.ts";
import { createSlice, isContested } from "./slice.ts";
import { createSlicePump } from "./slice-pump.ts";
import type { LedgerStore, ReturnRequest } from "./store.ts";
import { NotLive } from "./store.ts";

export type { Shortage, Slice } from "./slice.ts";

export interface SlicesOptions {
	/** Slices are sized for this long: an outage of the database shall not starve a busy account. */
	horizonMs: number;
	idleReturnMs: number;
	/** How long a request waits for a grant before it hears 503. */
	drawDeadlineMs: number;
	tickMs: number;
}

export interface Slices {
	get(budget: string): Slice | undefined;
	/** All slices, for reconciliation and metrics. */
	all(): Iterable<Slice>;
	/**
	 * Waits until `need` was free in each of the budgets, one after the other, or says which one lacks it. What was got
	 * stays here until the caller had its turn to reserve. A Fault if the database does not answer in time.
	 */
	draw(budgets: readonly string[], need: NanoUsd): Promise<Shortage | null>;
	/** After a reservation: asks for more before the slice runs out. */
	topUp(slice: Slice, nowMs: number): void;
	/** After a settlement. */
	settled(slice: Slice, nowMs: number): void;
	/**
	 * Gives back all that lies free or is on its way here, now, and what becomes free for some seconds.
	 * Resolves when Postgres has it.
	 */
	surrender(budget: string): Promise<void>;
	/** The limit changed: what was refused may be possible now. */
	limitChanged(budget: string): void;
	/** Nothing more is admitted: gives back all that is free, and from now on all that becomes free. */
	handBack(): Promise<void>;
	/** Stops asking and returning. */
	stop(): void;
}

const CONTESTED_MS = 5_000;
const RETRY_MS = 100;
const RETURNS_A_STATEMENT = 1_000;
const WAITERS_MAX = 10_000;
const BURN_SMOOTHING = 0.3;
const PEAK_FADING = 0.95;

interface OutgoingReturn {
	readonly request: ReturnRequest;
	resolve(arrived: boolean): void;
}

export function createSlices(
	deps: { store: LedgerStore; clock: Clock; log: Log; newUuid: () => string },
	options: SlicesOptions,
): Slices {
	const { store, clock, log, newUuid } = deps;
	const slices = new Map<string, Slice>();
	const pump = createSlicePump({ ...deps, onServed: giveBackIfIdle }, options);
	let stopped = false;
	let outbox: OutgoingReturn[] = [];
	let cancelTick = clock.after(options.tickMs, tick);

	function obtain(budget: string): Slice {
		let slice = slices.get(budget);
		if (slice === undefined) {
			slice = createSlice(budget, clock.monotonicMs());
			slices.set(budget, slice);
		}
		return slice;
	}

	function giveBackIfIdle(slice: Slice): void {
		if (isContested(slice, clock.monotonicMs()) && slice.waiters.length === 0 && !slice.pumping) giveBack(slice);
	}

	/** Takes what is free from memory first: from here on it cannot be spent, whatever the reply's fate. */
	function giveBack(slice: Slice): void {
		if (slice.free <= slice.promised || stopped) return;
		const amount = subUsd(slice.free, slice.promised);
		slice.free = slice.promised;
		slice.returning = addUsd(slice.returning, amount);
		const sent = sendBack({ op: newUuid(), budget: slice.budget, amount }).then((arrived) => {
			slice.returns.delete(sent);
			if (arrived) slice.returning = subUsd(slice.returning, amount);
		});
		slice.returns.add(sent);
		slice.returnsEver += 1;
	}

	/** Returns of the same turn go together. False if it was given up: then it is free again when the leases are closed. */
	function sendBack(request: ReturnRequest): Promise<boolean> {
		return new Promise((resolve) => {
			if (outbox.length === 0) queueMicrotask(emptyOutbox);
			outbox.push({ request, resolve });
		});
	}

	function emptyOutbox(): void {
		const sent = outbox;
		outbox = [];
		for (let at = 0; at < sent.length; at += RETURNS_A_STATEMENT)
			void deliver(sent.slice(at, at + RETURNS_A_STATEMENT));
	}

	async function deliver(batch: readonly OutgoingReturn[]): Promise<void> {
		const requests = batch.map(({ request }) => request);
		let arrived = false;
		while (!arrived && !stopped) {
			try {
				await store.giveBack(requests);
				arrived = true;
			} catch (error) {
				log.warn("returns were not answered; sending them again", { returns: requests.length, error });
				await sleep(clock, RETRY_MS);
			}
		}
		for (const { resolve } of batch) resolve(arrived);
	}

	function tick(): void {
		if (stopped) return;
		cancelTick = clock.after(options.tickMs, tick);
		const nowMs = clock.monotonicMs();
		for (const slice of slices.values()) {
			const perSecond = (slice.burntSinceTick * 1000) / options.tickMs;
			// Up at once: an outage can begin in the first seconds of an account's traffic.
			slice.burnPerSecond += (perSecond > slice.burnPerSecond ? 1 : BURN_SMOOTHING) * (perSecond - slice.burnPerSecond);
			slice.burntSinceTick = 0;
			slice.heldPeak = Math.max(slice.held, slice.heldPeak * PEAK_FADING);
			if (slice.held > 0 || slice.waiters.length > 0 || slice.pumping) continue;
			if (nowMs - slice.lastUsedMs < options.idleReturnMs) continue;
			if (slice.free > 0) giveBack(slice);
			else if (slice.unacknowledged === 0 && slice.returning === 0) slices.delete(slice.budget);
		}
	}

	/** Null: it is promised, and the caller takes the promise back. */
	async function drawOne(slice: Slice, need: NanoUsd): Promise<Shortage | null> {
		slice.lastUsedMs = clock.monotonicMs();
		if (slice.free >= need) {
			slice.promised = addUsd(slice.promised, need);
			return null;
		}
		if (stopped) throw unavailable({ private: "the ledger is stopping" });
		if (slice.waiters.length >= WAITERS_MAX) {
			throw new Fault("overloaded", "Too many requests wait for credit of this account.", { retryAfterS: 1 });
		}
		return new Promise((resolve, reject) => {
			const cancel = clock.after(options.drawDeadlineMs, () => {
				slice.waiters = slice.waiters.filter((other) => other !== waiter);
				reject(unavailable({ private: "no grant in time" }));
			});
			slice.waitersEver += 1;
			const waiter: Waiter = {
				number: slice.waitersEver,
				need,
				resolve(shortage) {
					cancel();
					if (shortage === null) slice.promised = addUsd(slice.promised, need);
					resolve(shortage);
				},
				reject(cause) {
					cancel();
					reject(unavailable({ cause }));
				},
			};
			slice.waiters.push(waiter);
			if (!slice.pumping) void pump.serve(slice);
		});
	}

	return {
		get: (budget) => slices.get(budget),
		all: () => slices.values(),
		async draw(budgets, need) {
			assert(need >= 0, "a need is not negative");
			const got: Slice[] = [];
			try {
				for (const budget of budgets) {
					const slice = obtain(budget);
					const shortage = await drawOne(slice, need);
					if (shortage) return shortage;
					got.push(slice);
				}
				return null;
			} finally {
				clock.after(0, () => {
					for (const slice of got) {
						slice.promised = subUsd(slice.promised, need);
						giveBackIfIdle(slice);
					}
				});
			}
		},
		topUp(slice, nowMs) {
			slice.lastUsedMs = nowMs;
			if (slice.held > slice.heldPeak) slice.heldPeak = slice.held;
			pump.askAhead(slice, nowMs);
		},
		settled(slice, nowMs) {
			slice.lastUsedMs = nowMs;
			giveBackIfIdle(slice);
		},
		async surrender(budget) {
			const slice = slices.get(budget);
			if (!slice) return;
			slice.contestedUntilMs = Math.max(slice.contestedUntilMs, clock.monotonicMs() + CONTESTED_MS);
			// Waiters of our own ask again beside the others: a slice that covers none of them helps nobody.
			giveBack(slice);
			if (slice.asking) {
				await slice.asking;
				giveBack(slice);
			}
			await Promise.all(slice.returns);
		},
		limitChanged(budget) {
			const slice = slices.get(budget);
			if (slice) slice.dryUntilMs = Number.NEGATIVE_INFINITY;
		},
		async handBack() {
			for (const slice of slices.values()) {
				slice.contestedUntilMs = Number.POSITIVE_INFINITY;
				giveBack(slice);
			}
			await Promise.all([...slices.values()].flatMap((slice) => [...slice.returns]));
		},
		stop() {
			stopped = true;
			pump.stop();
			cancelTick();
			for (const slice of slices.values()) {
				for (const waiter of slice.waiters.splice(0)) waiter.reject(new NotLive("the ledger is stopping"));
			}
		},
	};
}

function unavailable(detail: FaultDetail): Fault {
	return new Fault("service_unavailable", "Credit cannot be reserved right now.", { retryAfterS: 1, ...detail });
}
