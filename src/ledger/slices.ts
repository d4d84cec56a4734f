import { assert } from "../base/assert.ts";
import type { Clock } from "../base/clock.ts";
import { sleep } from "../base/clock.ts";
import type { FaultDetail } from "../base/fault.ts";
import { Fault } from "../base/fault.ts";
import type { Log } from "../base/log.ts";
import type { NanoUsd } from "../money/nano-usd.ts";
import { addUsd, maxUsd, minUsd, nanoUsd, subUsd, ZERO_USD } from "../money/nano-usd.ts";
import { createGrants } from "./grants.ts";
import type { Shortage, Slice, Waiter } from "./slice.ts";
import { createSlice } from "./slice.ts";
import type { GrantReply, LedgerStore, ReturnRequest } from "./store.ts";
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

/** A first slice is this many times what the request needs, if credit is plentiful. */
const GRANT_NEEDS = 32;
const CONTESTED_MS = 5_000;
const DRY_MS = 1_000;
const RETRY_MS = 100;
/** Each refusal asks the other instances first, but not more often than this: what comes meanwhile waits and is asked for together. */
const RECALL_INTERVAL_MS = 100;
const WAITERS_MAX = 10_000;
/** What is asked for ahead, in targets. */
const ASK_AHEAD = 1.5;
const BURN_SMOOTHING = 0.3;
const PEAK_FADING = 0.95;
/** No slice is made larger than this by asking ahead: 2^40 nano-dollars, about $1,100. */
const TARGET_MAX = 2 ** 40;

export function createSlices(
	deps: { store: LedgerStore; clock: Clock; log: Log; newUuid: () => string },
	options: SlicesOptions,
): Slices {
	const { store, clock, log, newUuid } = deps;
	const slices = new Map<string, Slice>();
	const grants = createGrants(deps);
	let stopped = false;
	let cancelTick = clock.after(options.tickMs, tick);

	function obtain(budget: string): Slice {
		let slice = slices.get(budget);
		if (slice === undefined) {
			slice = createSlice(budget, clock.monotonicMs());
			slices.set(budget, slice);
		}
		return slice;
	}

	const isContested = (slice: Slice) => slice.contestedUntilMs > clock.monotonicMs();

	/** What a slice should hold free: its burn over the horizon and room for as many requests as ran at once. */
	function target(slice: Slice): number {
		return Math.min(TARGET_MAX, Math.ceil((slice.burnPerSecond * options.horizonMs) / 1000 + 2 * slice.heldPeak));
	}

	/** In the moment in which a grant arrives the waiters have it, before anyone can ask to give it back. */
	async function ask(slice: Slice, want: NanoUsd, min: NanoUsd): Promise<{ reply: GrantReply; left: NanoUsd }> {
		const answer = grants.ask(slice.budget, want, min).then((reply) => {
			slice.free = addUsd(slice.free, reply.amount);
			return { reply, left: wake(slice) };
		});
		const asking = answer.then(
			() => {},
			() => {},
		);
		slice.asking = asking;
		try {
			return await answer;
		} finally {
			if (slice.asking === asking) slice.asking = undefined;
		}
	}

	/** Wakes waiters in their order as far as what is free covers them; gives what is left then. */
	function wake(slice: Slice): NanoUsd {
		let left = slice.free;
		slice.waiters = slice.waiters.filter((waiter) => {
			if (waiter.need > left) return true;
			left = subUsd(left, waiter.need);
			waiter.resolve(null);
			return false;
		});
		return left;
	}

	/** One pump a slice at a time: it serves the waiters, asking Postgres for what they need together. */
	async function pump(slice: Slice): Promise<void> {
		slice.pumping = true;
		let searchedFor = 0;
		try {
			let left = wake(slice);
			while (slice.waiters.length > 0) {
				// Some of it may have been reserved in the meantime.
				left = minUsd(left, slice.free);
				const { want, min } = wishFor(slice, left);
				const need = addUsd(min, left);
				const upTo = slice.waitersEver;
				// What is still on its way back then may reach Postgres only behind the question.
				const returnsBefore = slice.returnsEver - slice.returns.size;
				const asked = await ask(slice, want, min);
				left = asked.left;
				if (asked.reply.amount > 0) {
					// What the others had is known no longer.
					searchedFor = 0;
					continue;
				}
				// Those who came meanwhile, and those who need less, were not part of the question.
				const refused = (waiter: Waiter) => waiter.number <= upTo && waiter.need >= need && waiter.need > slice.free;
				const newest = slice.waitersEver;
				const isNew = slice.waiters.some((waiter) => refused(waiter) && waiter.number > searchedFor);
				const returned = slice.returnsEver > returnsBefore;
				if (await search(slice, isNew && asked.reply.elsewhere)) searchedFor = newest;
				else if (!returned) {
					slice.dryUntilMs = clock.monotonicMs() + DRY_MS;
					refuse(slice, refused, asked.reply.available ?? ZERO_USD);
				}
				left = wake(slice);
			}
		} catch (error) {
			for (const waiter of slice.waiters.splice(0)) waiter.reject(error);
		} finally {
			slice.pumping = false;
			// A recall that came while waiters were served is honoured now.
			giveBackIfIdle(slice);
		}
	}

	function wishFor(slice: Slice, left: NanoUsd): { want: NanoUsd; min: NanoUsd } {
		const needs = slice.waiters.map((waiter) => waiter.need);
		const min = nanoUsd(Math.max(1, Math.min(...needs) - left));
		// While others lack this budget, more than the next request needs would only lie about here.
		if (isContested(slice)) return { want: min, min };
		const sum = needs.reduce((total, need) => Math.min(total + need, Number.MAX_SAFE_INTEGER), 0);
		const ahead = Math.min(TARGET_MAX, Math.max(target(slice), GRANT_NEEDS * Math.max(...needs)));
		return { want: maxUsd(min, nanoUsd(Math.min(Number.MAX_SAFE_INTEGER, sum + ahead) - left)), min };
	}

	/** Before a refusal: brings in what is on its way back, and what lies idle elsewhere. True if others were asked. */
	async function search(slice: Slice, elsewhere: boolean): Promise<boolean> {
		await Promise.all(slice.returns);
		if (!elsewhere) return false;
		const waitMs = slice.recalledMs + RECALL_INTERVAL_MS - clock.monotonicMs();
		if (waitMs > 0) await sleep(clock, waitMs);
		slice.recalledMs = clock.monotonicMs();
		await store.recall(slice.budget);
		return true;
	}

	function refuse(slice: Slice, refused: (waiter: Waiter) => boolean, available: NanoUsd): void {
		const out = slice.waiters.filter(refused);
		slice.waiters = slice.waiters.filter((waiter) => !refused(waiter));
		for (const waiter of out) {
			waiter.resolve({
				budget: slice.budget,
				needNanoUsd: waiter.need,
				availableNanoUsd: addUsd(available, slice.free),
			});
		}
	}

	async function askAhead(slice: Slice, want: NanoUsd): Promise<void> {
		slice.pumping = true;
		try {
			const { reply } = await ask(slice, want, nanoUsd(1));
			if (reply.amount < want) slice.dryUntilMs = clock.monotonicMs() + DRY_MS;
		} catch (error) {
			log.debug("asking ahead failed", { budget: slice.budget, error });
		} finally {
			slice.pumping = false;
			if (slice.waiters.length > 0) void pump(slice);
			else giveBackIfIdle(slice);
		}
	}

	function giveBackIfIdle(slice: Slice): void {
		if (isContested(slice) && slice.waiters.length === 0 && !slice.pumping) giveBack(slice);
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

	/** False if it was given up: then the amount is free again when the leases are closed. */
	async function sendBack(request: ReturnRequest): Promise<boolean> {
		while (!stopped) {
			try {
				await store.giveBack([request]);
				return true;
			} catch (error) {
				log.warn("a return was not answered; sending it again", { budget: request.budget, error });
				await sleep(clock, RETRY_MS);
			}
		}
		return false;
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
			if (!slice.pumping) void pump(slice);
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
			if (slice.pumping || stopped || slice.dryUntilMs > nowMs || slice.contestedUntilMs > nowMs) return;
			const wanted = target(slice);
			if (slice.free >= wanted) return;
			// More than the target, so that not every request asks again.
			void askAhead(slice, minUsd(nanoUsd(Math.ceil(wanted * ASK_AHEAD) - slice.free), nanoUsd(TARGET_MAX)));
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
			grants.stop();
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
