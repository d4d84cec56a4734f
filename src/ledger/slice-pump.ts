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
	/** Returns free credit that is not promised. */
	giveBack(slice: Slice): void;
	/** As in `GrantsDeps`. */
	onUnknown(budget: string): void;
	/** The slice is not being pumped any more. */
	onServed(slice: Slice): void;
}

/** A first slice is this many times what the request needs, if credit is plentiful. */
const GRANT_NEEDS = 32;
/** How much is requested in advance, in targets. */
const ASK_AHEAD = 1.5;
const DRY_MS = 1_000;
/** A refusal needs a recall first, but not more often than this: requests in between share the next recall. */
const RECALL_INTERVAL_MS = 100;
/** Pause between two checks for answers: an answer takes some round trips. */
const ANSWER_PAUSE_MS_MIN = 5;
const ANSWER_PAUSE_MS_MAX = 100;
/** Without proof by then, the refusal becomes a 503 with `retry-after`. */
const PROOF_MS_MAX = 2_000;
/** Upper bound of a slice that is filled in advance: 2^40 nano-dollars, about $1,100. */
const TARGET_MAX = 2 ** 40;

/**
 * A recall under way: waiters up to `upTo` may be refused when all instances have answered it. One recall is not
 * enough. Answers come one after the other, and credit freed after the first may have been on its way while another
 * instance spent what it had not yet returned. So all are asked twice. After the first answers (`before`) no instance
 * keeps idle credit. Credit idle at the time of the second recall has arrived with its answers. It was available to
 * this check unless others took it since, and the sum they took is known. So a refusal is proved for one moment.
 */
interface Search {
	readonly ticket: number;
	readonly upTo: number;
	/** Waiters up to `firstUpTo` have waited for a proof since then. */
	readonly sinceMs: number;
	readonly firstUpTo: number;
	readonly before: Look | undefined;
	pauseMs: number;
}

/** `lent` at a check that all had answered, and the free, unpromised credit here after it. */
interface Look {
	readonly lent: bigint;
	readonly free: NanoUsd;
}

/** Brings credit into slices: for waiting requests, and in advance. */
export function createSlicePump(deps: SlicePumpDeps, options: { horizonMs: number }) {
	const { clock, log } = deps;
	const grants = createGrants(deps);
	const recaller: Recaller = createRecaller(deps);

	/** Target of a slice's free credit: its burn over the horizon, plus room for as many requests as ran at once. */
	function target(slice: Slice): number {
		return Math.min(TARGET_MAX, Math.ceil((slice.burnPerSecond * options.horizonMs) / 1000 + 2 * slice.heldPeak));
	}

	/** Waiters receive a grant in the moment in which it arrives, before a recall can return it. */
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

	/** Returns what is left after the waiters had theirs. */
	function take(slice: Slice, reply: GrantReply): NanoUsd {
		slice.free = addUsd(slice.free, reply.amount);
		if (reply.contested) slice.contestedUntilMs = Math.max(slice.contestedUntilMs, clock.monotonicMs() + CONTESTED_MS);
		if (!slice.askedTooEarly) return wake(slice);
		deps.giveBack(slice);
		return ZERO_USD;
	}

	/** Wakes waiters in order as far as the free credit covers them; returns the rest. */
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

	/** One pump per slice: it requests what all waiters need together. */
	async function serve(slice: Slice): Promise<void> {
		slice.pumping = true;
		let search: Search | undefined;
		try {
			let left = wake(slice);
			while (slice.waiters.length > 0) {
				// Some of it may have been reserved since.
				left = minUsd(left, slice.free);
				const { want, min } = wishFor(slice, left);
				const upTo = slice.waitersEver;
				// A return still on its way may reach Postgres after this request.
				const returnsBefore = slice.returnsEver - slice.returns.size;
				const asked = await ask(slice, want, min, search?.ticket ?? null);
				left = asked.left;
				if (asked.reply.untimely) {
					refuse(slice, slice.waiters, ZERO_USD, true);
					continue;
				}
				if (asked.reply.amount > 0) {
					// What the others had is not known any more.
					search = undefined;
					continue;
				}
				// Excludes waiters added during the request, and those that need less than was refused.
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
			// Answers a recall that came while waiters were served.
			deps.onServed(slice);
		}
	}

	function wishFor(slice: Slice, left: NanoUsd): { want: NanoUsd; min: NanoUsd } {
		const needs = slice.waiters.map((waiter) => waiter.need);
		const min = nanoUsd(Math.max(1, Math.min(...needs) - left));
		// While other instances need this budget, more than the next request needs would lie idle here.
		if (isContested(slice, clock.monotonicMs())) return { want: min, min };
		const sum = needs.reduce((total, need) => Math.min(total + need, Number.MAX_SAFE_INTEGER), 0);
		const ahead = Math.min(TARGET_MAX, Math.max(target(slice), GRANT_NEEDS * Math.max(...needs)));
		return { want: maxUsd(min, nanoUsd(Math.min(Number.MAX_SAFE_INTEGER, sum + ahead) - left)), min };
	}

	/**
	 * Postgres had too little. That proves nothing while instances with credit have not answered a recall: they are
	 * asked, again for new requests. Waiters without a proof in time receive an error.
	 */
	async function judge(
		slice: Slice,
		refused: readonly Waiter[],
		reply: GrantReply,
		search: Search | undefined,
	): Promise<Search | undefined> {
		const available = reply.available ?? ZERO_USD;
		if (reply.unanswered === 0 && (!search || reply.lent === null)) {
			// Too little exists on all instances together.
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
			// Others took some since. The next check is the first of two again, for the remaining waiters.
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

	/** Recalls from the others, first or (`lent`: after their answers) again. Undefined: no answer from Postgres. */
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

	/** At the second recall less than the need was idle: available now, free here, and taken by others together. */
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
		/** Serves the slice's waiters until there are none. One at a time per slice: call only if it is not `pumping`. */
		serve,
		/** Requests more if the slice holds less free credit than its target. */
		askAhead(slice: Slice, nowMs: number) {
			if (slice.pumping || slice.dryUntilMs > nowMs || isContested(slice, nowMs)) return;
			const wanted = target(slice);
			if (slice.free >= wanted) return;
			// More than the target, so that not every request triggers a grant.
			void fill(slice, minUsd(nanoUsd(Math.ceil(wanted * ASK_AHEAD) - slice.free), nanoUsd(TARGET_MAX)));
		},
		stop: grants.stop,
	};
}
