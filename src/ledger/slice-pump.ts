import { type Clock, sleep } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { addUsd, maxUsd, minUsd, type NanoUsd, nanoUsd, subUsd, ZERO_USD } from "../money/nano-usd.ts";
import { createGrants } from "./grants.ts";
import { createRecaller, type Recaller } from "./recaller.ts";
import { CONTESTED_MS, type CreditWaiter, isContested, type Slice } from "./slice.ts";
import type { GrantReply, LedgerStore } from "./store.ts";

export interface SlicePumpDeps {
	store: LedgerStore;
	clock: Clock;
	log: Log;
	newUuid: () => string;
	/** Returns the slice's free credit, except the part that is promised to waiting requests. */
	giveBack(slice: Slice): void;
	/** Called if it remains unknown whether a grant was executed. If it was, closing the epoch returns the credit. */
	onUnknown(budget: string): void;
	/** Called when no request waits for the slice any more. */
	onServed(slice: Slice): void;
}

/** Size of a slice's first grant in multiples of the request's need, if the budget has that much. */
const GRANT_NEEDS = 32;
/** Credit in a slice after a grant, in multiples of the slice's target. */
const ASK_AHEAD = 1.5;
const DRY_MS = 1_000;
/** Minimum milliseconds between two recalls of a budget. All requests refused in between share the next recall. */
const RECALL_INTERVAL_MS = 100;
/** First pause in milliseconds between checks whether other instances have answered a recall. */
const ANSWER_PAUSE_MS_MIN = 5;
const ANSWER_PAUSE_MS_MAX = 100;
/** Milliseconds for proving a shortage. A request without proof gets a 503 with `retry-after` instead of a 402. */
const PROOF_MS_MAX = 2_000;
/** Largest target of a slice: 2^40 nano-dollars, about $1,100. */
const TARGET_MAX = 2 ** 40;

/**
 * A recall that is to prove that a budget has too little for waiters up to number `upTo`. Credit freed after an
 * instance's answer may be in transit while another spends the rest, so all instances are recalled twice. After the
 * first answers (`before`) none keeps idle credit. Credit idle at the second recall is then in Postgres, or was granted
 * to other instances since, which `lent` counts. So at one moment all credit was less than the need.
 */
interface Search {
	readonly ticket: number;
	readonly upTo: number;
	/** Time since which the waiters up to `firstUpTo` have waited for a proof. */
	readonly sinceMs: number;
	readonly firstUpTo: number;
	readonly before: Look | undefined;
	pauseMs: number;
}

/** State after the first answers: the budget's `lent`, and the free credit on this instance that is not promised. */
interface Look {
	readonly lent: bigint;
	readonly free: NanoUsd;
}

/** Draws credit into slices: for waiting requests, and in advance. */
export function createSlicePump(deps: SlicePumpDeps, options: { horizonMs: number }) {
	const { clock, log } = deps;
	const grants = createGrants(deps);
	const recaller: Recaller = createRecaller(deps);

	/** Free credit that a slice should have: expected spending until the horizon, plus twice the peak of held credit. */
	function target(slice: Slice): number {
		return Math.min(TARGET_MAX, Math.ceil((slice.burnPerSecond * options.horizonMs) / 1000 + 2 * slice.heldPeak));
	}

	/** Requests a grant. Waiting requests get the credit at its arrival, before a recall can return it. */
	async function ask(
		slice: Slice,
		want: NanoUsd,
		min: NanoUsd,
		ticket: number | null,
	): Promise<{ reply: GrantReply; left: NanoUsd }> {
		slice.askedTooEarly = false;
		const answer = grants.ask(slice.budget, want, min, ticket).then((reply) => ({ reply, left: take(slice, reply) }));
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

	/** Adds a grant to the slice. Returns the free credit that is left after waiting requests were served. */
	function take(slice: Slice, reply: GrantReply): NanoUsd {
		slice.free = addUsd(slice.free, reply.amount);
		if (reply.contested) slice.contestedUntilMs = Math.max(slice.contestedUntilMs, clock.monotonicMs() + CONTESTED_MS);
		if (!slice.askedTooEarly) return wake(slice);
		deps.giveBack(slice);
		return ZERO_USD;
	}

	/** Resumes waiting requests in order while free credit suffices; returns what is left. */
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

	/** Requests grants until no request waits for the slice. Runs at most once per slice at a time. */
	async function serve(slice: Slice): Promise<void> {
		slice.pumping = true;
		let search: Search | undefined;
		try {
			let left = wake(slice);
			while (slice.waiters.length > 0) {
				// Lowers what is left, because new requests may have reserved free credit during the last step.
				left = minUsd(left, slice.free);
				const { want, min } = wishFor(slice, left);
				const upTo = slice.waitersEver;
				// Number of returns that had arrived. If others arrive during the grant, its refusal proves nothing.
				const returnsBefore = slice.returnsEver - slice.returns.size;
				const asked = await ask(slice, want, min, search?.ticket ?? null);
				left = asked.left;
				if (asked.reply.untimely) {
					refuse(slice, slice.waiters, ZERO_USD, true);
					continue;
				}
				if (asked.reply.amount > 0) {
					// The other instances' credit has changed with this grant, so the proof starts again.
					search = undefined;
					continue;
				}
				// Leaves out requests that began to wait during the grant, and those that need less than the refused amount.
				const refused = slice.waiters.filter(({ number, need }) => number <= upTo && need - slice.free >= min);
				if (refused.length > 0) {
					await Promise.all(slice.returns);
					if (slice.returnsEver === returnsBefore) search = await judge(slice, refused, asked.reply, search);
				}
				left = wake(slice);
			}
		} catch (error) {
			for (const waiter of slice.waiters.splice(0)) waiter.reject(error);
		} finally {
			slice.pumping = false;
			// Sends the answer to a recall that arrived while requests waited.
			deps.onServed(slice);
		}
	}

	function wishFor(slice: Slice, left: NanoUsd): { want: NanoUsd; min: NanoUsd } {
		const needs = slice.waiters.map((waiter) => waiter.need);
		const min = nanoUsd(Math.max(1, Math.min(...needs) - left));
		// Requests only what the next request needs, because other instances need credit of this budget too.
		if (isContested(slice, clock.monotonicMs())) return { want: min, min };
		const sum = needs.reduce((total, need) => Math.min(total + need, Number.MAX_SAFE_INTEGER), 0);
		const ahead = Math.min(TARGET_MAX, Math.max(target(slice), GRANT_NEEDS * Math.max(...needs)));
		return { want: maxUsd(min, nanoUsd(Math.min(Number.MAX_SAFE_INTEGER, sum + ahead) - left)), min };
	}

	/**
	 * Decides about waiting requests after Postgres had too little credit. A shortage is proved only after all instances
	 * with credit have answered a recall twice. Requests without a proof in time get a 503.
	 */
	async function judge(
		slice: Slice,
		refused: readonly CreditWaiter[],
		reply: GrantReply,
		search: Search | undefined,
	): Promise<Search | undefined> {
		const available = reply.available ?? ZERO_USD;
		if (reply.unanswered === 0 && (!search || reply.lent === null)) {
			// Postgres and all instances together have too little, so the shortage is proved.
			refuse(slice, refused, available);
			return undefined;
		}
		if (!search) {
			await sleepUntilRecall(slice);
			return recall(slice, undefined, undefined);
		}
		if (reply.lent !== null && !search.before) return recall(slice, search, reply.lent);
		let left = refused.filter(({ number }) => number <= search.upTo);
		if (reply.lent !== null && search.before) {
			const proven = left.filter(({ need }) => isProven(need, available, reply.lent as bigint, search.before as Look));
			refuse(slice, proven, available);
			if (proven.length === left.length) return undefined;
			left = left.filter((waiter) => !proven.includes(waiter));
		}
		if (clock.monotonicMs() - search.sinceMs >= PROOF_MS_MAX) {
			const out = left.filter(({ number }) => number <= search.firstUpTo);
			remove(slice, out);
			for (const waiter of out) waiter.reject(new Error("what other instances hold of it is not known"));
			return undefined;
		}
		if (reply.lent !== null) {
			// Other instances drew credit since the first answers, so these answers count as first ones again.
			await sleepUntilRecall(slice);
			return { ...search, before: undefined };
		}
		await sleep(clock, search.pauseMs);
		search.pauseMs = Math.min(2 * search.pauseMs, ANSWER_PAUSE_MS_MAX);
		return search;
	}

	async function sleepUntilRecall(slice: Slice): Promise<void> {
		const waitMs = slice.recalledMs + RECALL_INTERVAL_MS - clock.monotonicMs();
		if (waitMs > 0) await sleep(clock, waitMs);
	}

	/** Recalls credit from the other instances; with `lent` for the second time. Undefined if Postgres did not answer. */
	async function recall(
		slice: Slice,
		search: Search | undefined,
		lent: bigint | undefined,
	): Promise<Search | undefined> {
		const upTo = slice.waitersEver;
		const before =
			lent === undefined ? undefined : { lent, free: subUsd(slice.free, minUsd(slice.promised, slice.free)) };
		slice.recalledMs = clock.monotonicMs();
		const ticket = await recaller.recall(slice.budget).catch((error: unknown) => {
			log.warn("no answer to a recall; retrying", { budget: slice.budget, error });
			return undefined;
		});
		if (ticket === undefined) return undefined;
		const { sinceMs, firstUpTo } = search ?? { sinceMs: clock.monotonicMs(), firstUpTo: upTo };
		return { ticket, upTo, sinceMs, firstUpTo, before, pauseMs: ANSWER_PAUSE_MS_MIN };
	}

	/** True if the need exceeds all credit: available, free here, and granted to others since the first answers. */
	function isProven(need: NanoUsd, available: NanoUsd, lent: bigint, before: Look): boolean {
		const taken = lent - before.lent;
		return taken >= 0n && BigInt(available) + BigInt(before.free) + taken < BigInt(need);
	}

	function refuse(slice: Slice, refused: readonly CreditWaiter[], available: NanoUsd, untimely = false): void {
		slice.dryUntilMs = clock.monotonicMs() + DRY_MS;
		remove(slice, refused);
		for (const waiter of refused) {
			waiter.resolve({
				budget: slice.budget,
				needNanoUsd: waiter.need,
				availableNanoUsd: addUsd(available, slice.free),
				untimely,
			});
		}
	}

	function remove(slice: Slice, out: readonly CreditWaiter[]): void {
		const gone = new Set(out);
		slice.waiters = slice.waiters.filter((waiter) => !gone.has(waiter));
	}

	async function fill(slice: Slice, want: NanoUsd): Promise<void> {
		slice.pumping = true;
		try {
			const { reply } = await ask(slice, want, nanoUsd(1), null);
			if (reply.amount < want) slice.dryUntilMs = clock.monotonicMs() + DRY_MS;
		} catch (error) {
			log.debug("a grant in advance failed", { budget: slice.budget, error });
		} finally {
			slice.pumping = false;
			if (slice.waiters.length > 0) void serve(slice);
			else deps.onServed(slice);
		}
	}

	return {
		/** Serves the slice's waiting requests until none waits. Call it only if the slice is not `pumping`. */
		serve,
		/** Requests credit in advance if the slice has less than its target. */
		askAhead(slice: Slice, nowMs: number) {
			if (slice.pumping || slice.dryUntilMs > nowMs || isContested(slice, nowMs)) return;
			const wanted = target(slice);
			if (slice.free >= wanted) return;
			// Requests more than the target, so that one grant serves several requests.
			void fill(slice, minUsd(nanoUsd(Math.ceil(wanted * ASK_AHEAD) - slice.free), nanoUsd(TARGET_MAX)));
		},
		stop: grants.stop,
	};
}
