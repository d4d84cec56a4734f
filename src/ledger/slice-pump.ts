import { type Clock, sleep } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { addUsd, maxUsd, minUsd, type NanoUsd, nanoUsd, subUsd, ZERO_USD } from "../money/nano-usd.ts";
import { createGrants } from "./grants.ts";
import { createRecaller, type Recaller } from "./recaller.ts";
import { CONTESTED_MS, isContested, type Slice, type Waiter } from "./slice.ts";
import type { GrantReply, LedgerStore } from "./store.ts";

export interface SlicePumpDeps {
	store: LedgerStore;
	clock: Clock;
	log: Log;
	newUuid: () => string;
	/** Returns free credit that is not promised to a request. */
	giveBack(slice: Slice): void;
	/** Called if a grant's outcome stays unknown. If it was granted, closing the epoch returns the credit. */
	onUnknown(budget: string): void;
	/** Called when the slice has no waiters left. */
	onServed(slice: Slice): void;
}

/** First grant of a slice, in multiples of the request's need, if the budget has plenty. */
const GRANT_NEEDS = 32;
/** Credit that a request for a grant aims at, in multiples of the slice's target. */
const ASK_AHEAD = 1.5;
const DRY_MS = 1_000;
/** Least milliseconds between two recalls of a budget; requests refused in between share the next recall. */
const RECALL_INTERVAL_MS = 100;
/** First pause between checks for other instances' answers, which take some round trips. */
const ANSWER_PAUSE_MS_MIN = 5;
const ANSWER_PAUSE_MS_MAX = 100;
/** Time for proving a shortage. A request without proof by then gets a 503 with `retry-after` instead of a 402. */
const PROOF_MS_MAX = 2_000;
/** Largest target of a slice: 2^40 nano-dollars, about $1,100. */
const TARGET_MAX = 2 ** 40;

/**
 * A recall in progress, which proves that a budget has too little for waiters up to number `upTo`. Credit freed after
 * an instance's answer may be in transit while another instance spends the rest, so all are asked twice. After the
 * first answers (`before`) none keeps idle credit. Credit idle at the second recall has arrived with its answers, or
 * other instances took it since, and Postgres knows that sum. So for one moment a refusal is proved.
 */
interface Search {
	readonly ticket: number;
	readonly upTo: number;
	/** Since when waiters up to `firstUpTo` have waited for a proof. */
	readonly sinceMs: number;
	readonly firstUpTo: number;
	readonly before: Look | undefined;
	pauseMs: number;
}

/** The budget's `lent` when all instances had answered, and the free, unpromised credit on this instance after that. */
interface Look {
	readonly lent: bigint;
	readonly free: NanoUsd;
}

/** Gets credit into slices: for waiting requests, and before it is needed. */
export function createSlicePump(deps: SlicePumpDeps, options: { horizonMs: number }) {
	const { clock, log } = deps;
	const grants = createGrants(deps);
	const recaller: Recaller = createRecaller(deps);

	/** Free credit that a slice should have: spending over the horizon, and room for as many requests as ran at once. */
	function target(slice: Slice): number {
		return Math.min(TARGET_MAX, Math.ceil((slice.burnPerSecond * options.horizonMs) / 1000 + 2 * slice.heldPeak));
	}

	/** Requests a grant. Waiters get it in the moment of its arrival, before a recall can return it. */
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

	/** Adds a grant to the slice. Returns what is left after the waiters were served. */
	function take(slice: Slice, reply: GrantReply): NanoUsd {
		slice.free = addUsd(slice.free, reply.amount);
		if (reply.contested) slice.contestedUntilMs = Math.max(slice.contestedUntilMs, clock.monotonicMs() + CONTESTED_MS);
		if (!slice.askedTooEarly) return wake(slice);
		deps.giveBack(slice);
		return ZERO_USD;
	}

	/** Resumes waiters in order while free credit suffices; returns the rest. */
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

	/** Serves a slice's waiters by requesting grants for the sum of their needs. Runs once per slice at a time. */
	async function serve(slice: Slice): Promise<void> {
		slice.pumping = true;
		let search: Search | undefined;
		try {
			let left = wake(slice);
			while (slice.waiters.length > 0) {
				// A reservation may have used a part since.
				left = minUsd(left, slice.free);
				const { want, min } = wishFor(slice, left);
				const upTo = slice.waitersEver;
				// Returns that have arrived. If more arrive during the request, a refusal proves nothing.
				const returnsBefore = slice.returnsEver - slice.returns.size;
				const asked = await ask(slice, want, min, search?.ticket ?? null);
				left = asked.left;
				if (asked.reply.untimely) {
					refuse(slice, slice.waiters, ZERO_USD, true);
					continue;
				}
				if (asked.reply.amount > 0) {
					// Credit was granted, so what the other instances hold is no longer known. The recall starts again.
					search = undefined;
					continue;
				}
				// Leaves out waiters that came during the request, and those that need less than the refused amount.
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
			// Sends the answer to a recall that arrived while waiters were served.
			deps.onServed(slice);
		}
	}

	function wishFor(slice: Slice, left: NanoUsd): { want: NanoUsd; min: NanoUsd } {
		const needs = slice.waiters.map((waiter) => waiter.need);
		const min = nanoUsd(Math.max(1, Math.min(...needs) - left));
		// Requests only what the next request needs, because other instances need this budget.
		if (isContested(slice, clock.monotonicMs())) return { want: min, min };
		const sum = needs.reduce((total, need) => Math.min(total + need, Number.MAX_SAFE_INTEGER), 0);
		const ahead = Math.min(TARGET_MAX, Math.max(target(slice), GRANT_NEEDS * Math.max(...needs)));
		return { want: maxUsd(min, nanoUsd(Math.min(Number.MAX_SAFE_INTEGER, sum + ahead) - left)), min };
	}

	/**
	 * Decides about waiters after Postgres had too little. A shortage is proved only after all instances with credit have
	 * answered a recall twice. Waiters without a proof in time get a 503.
	 */
	async function judge(
		slice: Slice,
		refused: readonly Waiter[],
		reply: GrantReply,
		search: Search | undefined,
	): Promise<Search | undefined> {
		const available = reply.available ?? ZERO_USD;
		if (reply.unanswered === 0 && (!search || reply.lent === null)) {
			// All instances together have too little: the shortage is proved.
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
			// Other instances took credit since, so this check becomes the first of two again.
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

	/** Recalls credit from the other instances, first or (`lent`) second. Undefined if Postgres did not answer. */
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

	/** True if all credit was less than the need: available, free here, and taken by other instances since. */
	function isProven(need: NanoUsd, available: NanoUsd, lent: bigint, before: Look): boolean {
		const taken = lent - before.lent;
		return taken >= 0n && BigInt(available) + BigInt(before.free) + taken < BigInt(need);
	}

	function refuse(slice: Slice, refused: readonly Waiter[], available: NanoUsd, untimely = false): void {
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

	function remove(slice: Slice, out: readonly Waiter[]): void {
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
		/** Serves the slice's waiters until there are none. Call it only if the slice is not `pumping`. */
		serve,
		/** Requests credit in advance if the slice has less than its target. */
		askAhead(slice: Slice, nowMs: number) {
			if (slice.pumping || slice.dryUntilMs > nowMs || isContested(slice, nowMs)) return;
			const wanted = target(slice);
			if (slice.free >= wanted) return;
			// Requests more than the target, so that not every request causes a grant.
			void fill(slice, minUsd(nanoUsd(Math.ceil(wanted * ASK_AHEAD) - slice.free), nanoUsd(TARGET_MAX)));
		},
		stop: grants.stop,
	};
}
