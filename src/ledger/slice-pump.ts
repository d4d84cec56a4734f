import type { Clock } from "../base/clock.ts";
import { sleep } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { NanoUsd } from "../money/nano-usd.ts";
import { addUsd, maxUsd, minUsd, nanoUsd, subUsd, ZERO_USD } from "../money/nano-usd.ts";
import { createGrants } from "./grants.ts";
import type { Recaller } from "./recaller.ts";
import { createRecaller } from "./recaller.ts";
import type { Slice, Waiter } from "./slice.ts";
import { CONTESTED_MS, isContested } from "./slice.ts";
import type { GrantReply, LedgerStore } from "./store.ts";

/** Brings credit into slices: for requests that wait for it, and ahead of those that will come. */
export interface SlicePump {
	/** Serves the slice's waiters until there are none. One at a time for each slice: only if it is not `pumping`. */
	serve(slice: Slice): Promise<void>;
	/** Asks for more if the slice holds less free than its target. */
	askAhead(slice: Slice, nowMs: number): void;
	stop(): void;
}

export interface SlicePumpDeps {
	store: LedgerStore;
	clock: Clock;
	log: Log;
	newUuid: () => string;
	/** Takes what is free and not promised out of memory and sends it back. */
	giveBack(slice: Slice): void;
	/** As of `GrantsDeps`. */
	onUnknown(budget: string): void;
	/** The slice is not being pumped any more. */
	onServed(slice: Slice): void;
}

/** A first slice is this many times what the request needs, if credit is plentiful. */
const GRANT_NEEDS = 32;
/** What is asked for ahead, in targets. */
const ASK_AHEAD = 1.5;
const DRY_MS = 1_000;
/** Each refusal asks the other instances first, but not more often than this: what comes meanwhile waits and is asked for together. */
const RECALL_INTERVAL_MS = 100;
/** Between two looks at whether the others have answered: an answer takes some round trips. */
const ANSWER_PAUSE_MS_MIN = 5;
const ANSWER_PAUSE_MS_MAX = 100;
/** A refusal that is not proved by then is none: the request is told to come back. */
const PROOF_MS_MAX = 2_000;
/** No slice is made larger than this by asking ahead: 2^40 nano-dollars, about $1,100. */
const TARGET_MAX = 2 ** 40;

/**
 * A recall under way: whoever came up to `upTo` may be refused when all have answered it. One is not enough: answers are
 * given one after the other, and what was freed behind the first may have been on its way while another spent what it
 * had not yet given up. So all are asked twice. From the first answers on (`before`) nobody keeps what is idle; all
 * that lay idle anywhere in the moment of the second question has arrived with its answers, and was available to this
 * look unless others took it since, of which the sum is known. So a refusal is proved for one moment.
 */
interface Search {
	readonly ticket: number;
	readonly upTo: number;
	/** Who came up to `firstUpTo` has waited for a proof since then. */
	readonly sinceMs: number;
	readonly firstUpTo: number;
	readonly before: Look | undefined;
	pauseMs: number;
}

/** What `lent` was in a look that all had answered, and what was free here and nobody's behind it. */
interface Look {
	readonly lent: bigint;
	readonly free: NanoUsd;
}

export function createSlicePump(deps: SlicePumpDeps, options: { horizonMs: number }): SlicePump {
	const { clock, log } = deps;
	const grants = createGrants(deps);
	const recaller: Recaller = createRecaller(deps);
	let stopped = false;

	/** What a slice should hold free: its burn over the horizon and room for as many requests as ran at once. */
	function target(slice: Slice): number {
		return Math.min(TARGET_MAX, Math.ceil((slice.burnPerSecond * options.horizonMs) / 1000 + 2 * slice.heldPeak));
	}

	/** In the moment in which a grant arrives the waiters have it, before anyone can ask to give it back. */
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

	/** Gives what is left when the waiters had theirs. */
	function take(slice: Slice, reply: GrantReply): NanoUsd {
		slice.free = addUsd(slice.free, reply.amount);
		if (reply.contested) slice.contestedUntilMs = Math.max(slice.contestedUntilMs, clock.monotonicMs() + CONTESTED_MS);
		if (!slice.askedTooEarly) return wake(slice);
		deps.giveBack(slice);
		return ZERO_USD;
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
	async function serve(slice: Slice): Promise<void> {
		slice.pumping = true;
		let search: Search | undefined;
		try {
			let left = wake(slice);
			while (slice.waiters.length > 0) {
				// Some of it may have been reserved in the meantime.
				left = minUsd(left, slice.free);
				const { want, min } = wishFor(slice, left);
				const upTo = slice.waitersEver;
				// What is still on its way back then may reach Postgres only behind the question.
				const returnsBefore = slice.returnsEver - slice.returns.size;
				const asked = await ask(slice, want, min, search?.ticket ?? null);
				left = asked.left;
				if (asked.reply.untimely) {
					refuse(slice, slice.waiters, ZERO_USD, true);
					continue;
				}
				if (asked.reply.amount > 0) {
					// What the others had is known no longer.
					search = undefined;
					continue;
				}
				// Those who came meanwhile were not part of the question, nor are those who lack less than was refused.
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
			// A recall that came while waiters were served is honoured now.
			deps.onServed(slice);
		}
	}

	function wishFor(slice: Slice, left: NanoUsd): { want: NanoUsd; min: NanoUsd } {
		const needs = slice.waiters.map((waiter) => waiter.need);
		const min = nanoUsd(Math.max(1, Math.min(...needs) - left));
		// While others lack this budget, more than the next request needs would only lie about here.
		if (isContested(slice, clock.monotonicMs())) return { want: min, min };
		const sum = needs.reduce((total, need) => Math.min(total + need, Number.MAX_SAFE_INTEGER), 0);
		const ahead = Math.min(TARGET_MAX, Math.max(target(slice), GRANT_NEEDS * Math.max(...needs)));
		return { want: maxUsd(min, nanoUsd(Math.min(Number.MAX_SAFE_INTEGER, sum + ahead) - left)), min };
	}

	/**
	 * Postgres had too little. While instances that hold some have not answered a recall, that proves nothing: they are
	 * asked, and asked for again when new requests came; and whoever waited too long for the proof hears that it is missing.
	 */
	async function judge(
		slice: Slice,
		refused: readonly Waiter[],
		reply: GrantReply,
		search: Search | undefined,
	): Promise<Search | undefined> {
		const available = reply.available ?? ZERO_USD;
		if (reply.unanswered === 0 && (!search || reply.lent === null)) {
			// Too little is there, wherever it is.
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
			// Others took some meanwhile. The next look is the first of two again, for those who still wait.
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

	/** Asks the others, for the first time or (`lent`: behind their answers) once more. Undefined: it was not answered. */
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
			log.warn("a recall was not answered; asking again", { budget: slice.budget, error });
			return undefined;
		});
		if (ticket === undefined) return undefined;
		const { sinceMs, firstUpTo } = search ?? { sinceMs: clock.monotonicMs(), firstUpTo: upTo };
		return { ticket, upTo, sinceMs, firstUpTo, before, pauseMs: ANSWER_PAUSE_MS_MIN };
	}

	/** In the moment of the second question less than the need was idle: what is available now, was free here, or others took. */
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
			log.debug("asking ahead failed", { budget: slice.budget, error });
		} finally {
			slice.pumping = false;
			if (slice.waiters.length > 0) void serve(slice);
			else deps.onServed(slice);
		}
	}

	return {
		serve,
		askAhead(slice, nowMs) {
			if (slice.pumping || stopped || slice.dryUntilMs > nowMs || isContested(slice, nowMs)) return;
			const wanted = target(slice);
			if (slice.free >= wanted) return;
			// More than the target, so that not every request asks again.
			void fill(slice, minUsd(nanoUsd(Math.ceil(wanted * ASK_AHEAD) - slice.free), nanoUsd(TARGET_MAX)));
		},
		stop() {
			stopped = true;
			grants.stop();
		},
	};
}
