import { type Clock, sleep } from "../base/clock.ts";
import { Fault } from "../base/fault.ts";
import type { Log } from "../base/log.ts";
import type { LimitKind, ShareGrant, ShareRequest, ShareStore } from "./share-store.ts";

/**
 * This instance's share of a key's limit. Its count is at most `amount`, and all instances' amounts together are at
 * most the limit. A returned part leaves memory before the store gets it; a granted part enters memory after.
 */
export interface Share {
	readonly key: string;
	readonly kind: LimitKind;
	amount: number;
	/** Part of the limit that no instance held when this share was last drawn. */
	free: number;
	/** Limit of the key when it was last used. */
	limit: number;
	/** Number of the gate's openings at the last use. A change means that the gate has closed since. */
	openings: number;
	/** True if the limit was lowered or the gate closed since the last grant; until the next, only used parts stay. */
	isStale: boolean;
	/** This instance's current count for the limit, in whole requests or tokens. */
	used: () => number;
	/** True if no key uses the share: it is deleted once the store has its amount back. */
	isReleased: boolean;
	/** True if the store skipped it at the last draw, so that other instances' shares are unknown. */
	isLeftOut: boolean;
	/** Until then, requests of `drySize` or more are refused without a draw, because no instance could give as much. */
	dryUntilMs: number;
	drySize: number;
	/** Until then, unused parts are returned at once, because other instances need them. */
	contestedUntilMs: number;
	/** The draw in progress, which all waiting requests share. */
	drawing: Promise<void> | undefined;
	/** Share that the draw in progress needs; 0 without a draw. */
	need: number;
	answered: PromiseWithResolvers<void> | undefined;
}

const ASKS_A_STATEMENT = 500;
/** Milliseconds between the attempts of a draw, in which other instances can return unused parts. */
const ASK_AGAIN_MS = [20, 60, 120];
const DRY_MS = 500;

export interface SharesDeps {
	readonly store: ShareStore;
	readonly clock: Clock;
	readonly log: Log;
	/** Number of the gate's openings. Default: 0, for a gate that never closes. */
	readonly openings?: () => number;
}

export function createShares({ store, clock, log, openings = () => 0 }: SharesDeps) {
	/** Shares to send with the next call of the store. */
	const dirty = new Set<Share>();
	const all = new Map<string, Share>();
	let sending: Promise<void> | undefined;
	let seq = 0;
	/** Opening of the gate for which used shares were reported to the store, and the shares still to report. */
	let reportedOpening = openings();
	let reporting: Iterator<Share> | undefined;

	/** Sends one statement at a time, so that the store never records less than this instance uses. */
	async function send(): Promise<void> {
		const leftOut = new Set<Share>();
		for (let batch = nextBatch(); batch.length > 0; batch = nextBatch()) {
			const asks = batch.map(askOf);
			const opening = openings();
			try {
				take(batch, asks, await store.hold(asks), opening === openings());
			} catch (error) {
				log.debug("shares of limits could not be requested", { asks: asks.length, error });
				for (const share of batch) fail(share, error);
				break;
			}
			for (const share of batch) if (share.isLeftOut) leftOut.add(share);
		}
		// Skipped shares are sent again at the next tick.
		for (const share of leftOut) if (share.isLeftOut) dirty.add(share);
		// No `await` since the last `nextBatch`, so a share that is added after this line starts another `send`.
		sending = undefined;
	}

	/** Draws are sent before mere reports, which may take hundreds of statements. */
	function nextBatch(): readonly Share[] {
		const batch = new Set<Share>();
		for (const share of dirty) {
			if (batch.size >= ASKS_A_STATEMENT) break;
			dirty.delete(share);
			batch.add(share);
		}
		while (reporting !== undefined && batch.size < ASKS_A_STATEMENT) {
			const { done, value } = reporting.next();
			if (done) reporting = undefined;
			else if (needsReport(value)) batch.add(value);
		}
		return [...batch];
	}

	/**
	 * True for a used share that got no grant since the gate opened: the share was cut to its used part, which the store
	 * must know. Unused shares wait for their next use or a recall.
	 */
	function needsReport(share: Share): boolean {
		const used = share.used();
		if (used === 0 || (share.openings === reportedOpening && !share.isStale)) return false;
		share.isStale = true;
		share.amount = Math.min(share.amount, used);
		return true;
	}

	function askOf({ key, kind, limit, amount, need }: Share): ShareRequest {
		seq += 1;
		return { key, kind, limit, have: amount, need, seq };
	}

	/** Applies the store's answer. `inTime`: the gate stayed open since the call started. */
	function take(
		batch: readonly Share[],
		asks: readonly ShareRequest[],
		grants: readonly ShareGrant[],
		inTime: boolean,
	): void {
		const granted = new Map(grants.map((grant) => [idOf(grant), grant]));
		for (const [place, share] of batch.entries()) {
			const grant = granted.get(idOf(share));
			const ask = asks[place];
			share.isLeftOut = grant === undefined;
			if (grant !== undefined && ask !== undefined) {
				const more = Math.max(0, grant.share - ask.have);
				if (!inTime || ask.limit > share.limit) {
					// The grant is not used, so the next call tells the store the smaller share.
					dirty.add(share);
				} else if (more > 0) {
					// Adds the increase instead of setting the share, so that parts returned during the call stay returned.
					share.amount += more;
					share.isStale = false;
				}
				share.free = grant.free;
			}
			share.answered?.resolve();
			if (share.isReleased && share.amount === 0 && !share.isLeftOut && !dirty.has(share)) all.delete(idOf(share));
		}
	}

	/** Sends the share again: the outcome is unknown, and the store may have granted more than this instance uses. */
	function fail(share: Share, error: unknown): void {
		dirty.add(share);
		share.answered?.reject(error);
	}

	function kick(): void {
		// Waits for a tick, so that shares that change in the same tick are sent together.
		sending ??= Promise.resolve().then(send);
	}

	function asked(share: Share, size: number): Promise<void> {
		const used = share.used();
		share.need = used + size;
		// Requests admitted while there was no limit have no share yet, but must count for other instances.
		share.amount = Math.max(share.amount, used);
		share.answered = Promise.withResolvers();
		dirty.add(share);
		const answer = share.answered.promise;
		// A `send` in progress may end before it reads this share, so another one starts after it.
		if (sending === undefined) kick();
		else void sending.then(kick);
		return answer.finally(() => {
			share.need = 0;
			share.answered = undefined;
		});
	}

	async function drawNow(share: Share, size: number): Promise<void> {
		const mayHave = (amount: number) => share.used() + size <= amount;
		for (const pauseMs of [...ASK_AGAIN_MS, undefined]) {
			try {
				await asked(share, size);
			} catch (cause) {
				throw unchecked(cause);
			}
			if (mayHave(share.amount)) return;
			// Other instances use the rest of the limit, so more attempts are useless.
			if (pauseMs === undefined || !mayHave(share.limit)) break;
			await sleep(clock, pauseMs);
		}
		if (share.isLeftOut && mayHave(share.limit))
			throw unchecked(new Error("another transaction holds the row of its share"));
		share.dryUntilMs = clock.monotonicMs() + DRY_MS;
		share.drySize = size;
	}

	/** Keeps what a complete draw needs, nothing for an incomplete one: two instances could wait for each other's part. */
	function giveBack(share: Share): void {
		const used = share.used();
		const kept = share.need <= share.amount ? Math.max(share.need, used) : used;
		if (share.amount <= kept) return;
		share.amount = kept;
		dirty.add(share);
		kick();
	}

	return {
		/** Returns the share of a key's limit. Its amount may be zero. */
		obtain(key: string, kind: LimitKind, used: () => number): Share {
			let share = all.get(idOf({ key, kind }));
			if (share === undefined) {
				share = createShare(key, kind, used, openings());
				all.set(idOf(share), share);
			}
			share.used = used;
			share.isReleased = false;
			return share;
		},
		release(share: Share) {
			share.isReleased = true;
			share.amount = 0;
			dirty.add(share);
			kick();
		},
		/**
		 * Asks the store for a part of the limit, a few times if others must return theirs. Calls during a draw share it,
		 * so check again afterwards. Fault service_unavailable if the store does not answer.
		 */
		draw(share: Share, size: number): Promise<void> {
			share.drawing ??= drawNow(share, size).finally(() => (share.drawing = undefined));
			return share.drawing;
		},
		/**
		 * Applies the key's current limit. A grant made under a higher limit, or before the gate closed, may now belong to
		 * other instances. So unused parts are returned at once, used ones when free, and grants in transit are rejected.
		 */
		limitTo(share: Share, limit: number) {
			const opening = openings();
			if (limit < share.limit || opening !== share.openings) share.isStale = true;
			share.limit = limit;
			share.openings = opening;
			if (share.isStale) giveBack(share);
		},
		giveBack,
		/**
		 * Call it once a second. Repeats failed returns. After the gate has closed, also reports used parts, which may
		 * belong to an ended epoch.
		 */
		tick() {
			if (openings() !== reportedOpening) {
				reportedOpening = openings();
				reporting = all.values();
			}
			if (dirty.size > 0 || reporting !== undefined) kick();
		},
		/** Resolves when all returns were stored or have failed. */
		async sent() {
			while (sending !== undefined) await sending;
		},
	};
}

const unchecked = (cause: unknown) =>
	new Fault("service_unavailable", "The limits of this API key cannot be checked right now. Please try again.", {
		cause,
		retryAfterS: 1,
	});

const idOf = ({ kind, key }: Pick<Share, "kind" | "key">) => `${kind} ${key}`;

const createShare = (key: string, kind: LimitKind, used: () => number, openings: number): Share => ({
	key,
	kind,
	amount: 0,
	free: Number.POSITIVE_INFINITY,
	limit: 0,
	openings,
	isStale: false,
	isLeftOut: false,
	used,
	isReleased: false,
	dryUntilMs: Number.NEGATIVE_INFINITY,
	drySize: 1,
	contestedUntilMs: Number.NEGATIVE_INFINITY,
	drawing: undefined,
	need: 0,
	answered: undefined,
});
