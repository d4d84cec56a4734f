import { assert } from "../base/assert.ts";
import type { Clock } from "../base/clock.ts";
import { sleep } from "../base/clock.ts";
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
	/** Waits until `need` was free, or says what is missing. A Fault if the database does not answer in time. */
	draw(budget: string, need: NanoUsd): Promise<Shortage | null>;
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

	async function ask(slice: Slice, want: NanoUsd, min: NanoUsd): Promise<GrantReply> {
		const answer = grants.ask(slice.budget, want, min).then((reply) => {
			slice.free = addUsd(slice.free, reply.amount);
			return reply;
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
		let searched = false;
		try {
			for (let left = wake(slice); slice.waiters.length > 0; left = wake(slice)) {
				const { want, min } = wishFor(slice, left);
				const reply = await ask(slice, want, min);
				if (reply.amount > 0) searched = false;
				else if (!searched && (await search(slice, reply))) searched = true;
				else {
					searched = false;
					slice.dryUntilMs = clock.monotonicMs() + DRY_MS;
					refuse(slice, reply.available ?? ZERO_USD);
				}
			}
		} catch (error) {
			for (const waiter of slice.waiters.splice(0)) waiter.reject(error);
		} finally {
			slice.pumping = false;
			// A recall that came while waiters were served is honoured when those who were woken have reserved.
			if (isContested(slice)) clock.after(0, () => giveBackIfIdle(slice));
		}
	}

	function wishFor(slice: Slice, left: NanoUsd): { want: NanoUsd; min: NanoUsd } {
		const needs = slice.waiters.map((waiter) => waiter.need);
		const min = subUsd(nanoUsd(Math.min(...needs)), left);
		// While others lack this budget, more than the next request needs would only lie about here.
		if (isContested(slice)) return { want: min, min };
		const sum = needs.reduce((total, need) => Math.min(total + need, Number.MAX_SAFE_INTEGER), 0);
		const ahead = Math.min(TARGET_MAX, Math.max(target(slice), GRANT_NEEDS * Math.max(...needs)));
		return { want: maxUsd(min, nanoUsd(Math.min(Number.MAX_SAFE_INTEGER, sum + ahead) - left)), min };
	}

	/** Before a refusal: brings in what is on its way back and what lies idle elsewhere. False if there is neither. */
	async function search(slice: Slice, reply: GrantReply): Promise<boolean> {
		const own = slice.returns.size > 0;
		await Promise.all(slice.returns);
		if (!reply.elsewhere) return own;
		const waitMs = slice.recalledMs + RECALL_INTERVAL_MS - clock.monotonicMs();
		if (waitMs > 0) await sleep(clock, waitMs);
		slice.recalledMs = clock.monotonicMs();
		await store.recall(slice.budget);
		return true;
	}

	/** The smallest need was refused, so every need that what is free does not cover is refused. */
	function refuse(slice: Slice, available: NanoUsd): void {
		const refused = slice.waiters.filter((waiter) => waiter.need > slice.free);
		slice.waiters = slice.waiters.filter((waiter) => waiter.need <= slice.free);
		for (const waiter of refused) {
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
			const reply = await ask(slice, want, nanoUsd(1));
			if (reply.amount < want) slice.dryUntilMs = clock.monotonicMs() + DRY_MS;
		} catch (error) {
			log.debug("asking ahead failed", { budget: slice.budget, error });
		} finally {
			slice.pumping = false;
			if (slice.waiters.length > 0) void pump(slice);
			else if (isContested(slice)) giveBack(slice);
		}
	}

	function giveBackIfIdle(slice: Slice): void {
		if (isContested(slice) && slice.waiters.length === 0 && !slice.pumping) giveBack(slice);
	}

	/** Takes all that is free from memory first: from here on it cannot be spent, whatever the reply's fate. */
	function giveBack(slice: Slice): void {
		const amount = slice.free;
		if (amount === 0 || stopped) return;
		slice.free = ZERO_USD;
		slice.returning = addUsd(slice.returning, amount);
		const sent = sendBack({ op: newUuid(), budget: slice.budget, amount }).then((arrived) => {
			slice.returns.delete(sent);
			if (arrived) slice.returning = subUsd(slice.returning, amount);
		});
		slice.returns.add(sent);
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
			slice.burnPerSecond += BURN_SMOOTHING * (perSecond - slice.burnPerSecond);
			slice.burntSinceTick = 0;
			slice.heldPeak = Math.max(slice.held, slice.heldPeak * PEAK_FADING);
			if (slice.held > 0 || slice.waiters.length > 0 || slice.pumping) continue;
			if (nowMs - slice.lastUsedMs < options.idleReturnMs) continue;
			if (slice.free > 0) giveBack(slice);
			else if (slice.unacknowledged === 0 && slice.returning === 0) slices.delete(slice.budget);
		}
	}

	function waitFor(slice: Slice, need: NanoUsd): Promise<Shortage | null> {
		return new Promise((resolve, reject) => {
			const fail = (detail: { cause: unknown } | { private: string }) =>
				reject(new Fault("service_unavailable", "Credit cannot be reserved right now.", { retryAfterS: 1, ...detail }));
			const cancel = clock.after(options.drawDeadlineMs, () => {
				slice.waiters = slice.waiters.filter((other) => other !== waiter);
				fail({ private: "no grant in time" });
			});
			const waiter: Waiter = {
				need,
				resolve(shortage) {
					cancel();
					resolve(shortage);
				},
				reject(error) {
					cancel();
					fail({ cause: error });
				},
			};
			slice.waiters.push(waiter);
			if (!slice.pumping) void pump(slice);
		});
	}

	return {
		get: (budget) => slices.get(budget),
		all: () => slices.values(),
		async draw(budget, need) {
			assert(need >= 0, "a need is not negative");
			const slice = obtain(budget);
			slice.lastUsedMs = clock.monotonicMs();
			if (need === 0) return null;
			if (stopped) throw new Fault("service_unavailable", "Credit cannot be reserved right now.", { retryAfterS: 1 });
			if (slice.waiters.length >= WAITERS_MAX) {
				throw new Fault("overloaded", "Too many requests wait for credit of this account.", { retryAfterS: 1 });
			}
			return waitFor(slice, need);
		},
		topUp(slice, nowMs) {
			slice.lastUsedMs = nowMs;
			if (slice.held > slice.heldPeak) slice.heldPeak = slice.held;
			if (slice.pumping || stopped || slice.dryUntilMs > nowMs || slice.contestedUntilMs > nowMs) return;
			const wanted = target(slice);
			if (slice.free * 2 >= wanted) return;
			void askAhead(slice, minUsd(nanoUsd(wanted - slice.free), nanoUsd(TARGET_MAX)));
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
				// Those whom the grant woke reserve first.
				await sleep(clock, 0);
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
