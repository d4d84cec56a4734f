import type { Clock } from "../base/clock.ts";
import { sleep } from "../base/clock.ts";
import { Fault } from "../base/fault.ts";
import type { Log } from "../base/log.ts";
import type { LimitKind, ShareAsk, ShareGrant, ShareStore } from "./share-store.ts";

/**
 * This instance's part of one key's limit. What is counted here never passes `amount`, and the amounts of all instances
 * together never pass the limit: a share leaves memory before it is given back, and is in memory only once it was granted.
 */
export interface Share {
	readonly key: string;
	readonly kind: LimitKind;
	amount: number;
	/** What nobody held when this was last asked. */
	free: number;
	/** The key's limit when it was last used. */
	limit: number;
	/** How often this instance's gate had opened when this was last used. */
	openings: number;
	/** The limit was lowered, or the gate was closed, since anything was granted: until something is, no more is kept than is used. */
	isStale: boolean;
	/** What is counted here now, whole requests. */
	used: () => number;
	/** Nobody counts by it any more: it goes once the store has it back. */
	isReleased: boolean;
	/** The store left it out when it was asked last: what others have is not known. */
	isLeftOut: boolean;
	/** Nobody had anything to give: refused here without asking until then. */
	dryUntilMs: number;
	/** Others lack it: what is not used goes back at once. */
	contestedUntilMs: number;
	/** The draw under way, for all who wait. */
	drawing: Promise<void> | undefined;
	/** What a draw needs; 0 while none is under way. */
	need: number;
	answered: PromiseWithResolvers<void> | undefined;
}

export interface Shares {
	/** The share of a key's limit: the one that is there, or an empty one. */
	obtain(key: string, kind: LimitKind, used: () => number): Share;
	/** Gives all of it back. */
	release(share: Share): void;
	/** Resolves when there is room for one more, or nobody had any to give. Fault service_unavailable without an answer. */
	draw(share: Share): Promise<void>;
	/**
	 * The key's limit, as of now. What was granted of a higher one is beside it, at all instances together, and what was granted before
	 * the gate was closed others may have by now: what is not used of that goes back at once, what is used as it becomes free, and what
	 * is under way does not count.
	 */
	limitTo(share: Share, limit: number): void;
	/** Gives back all but what is used. */
	giveBack(share: Share): void;
	/** Once a second: what could not be sent is sent again, and behind a closed gate what is used, which may stand under an epoch that is over. */
	tick(): void;
	/** Resolves when all that was given back is in the store, or could not be. */
	sent(): Promise<void>;
}

const ASKS_A_STATEMENT = 500;
/** Pauses between asks of one draw, in which others give back what they do not use. */
const ASK_AGAIN_MS = [20, 60, 120];
const DRY_MS = 500;

export interface SharesDeps {
	readonly store: ShareStore;
	readonly clock: Clock;
	readonly log: Log;
	/** How often this instance's gate has opened; by default it never closes. */
	readonly openings?: () => number;
}

export function createShares({ store, clock, log, openings = () => 0 }: SharesDeps): Shares {
	/** What the store is to hear of. */
	const dirty = new Set<Share>();
	const all = new Map<string, Share>();
	let sending: Promise<void> | undefined;
	let seq = 0;
	/** As of when the store was told what is used here, and those of which it is to be. */
	let toldOpening = openings();
	let telling: Iterator<Share> | undefined;

	/** One statement at a time: so the store never knows of less than memory holds. */
	async function send(): Promise<void> {
		const leftOut = new Set<Share>();
		for (let batch = nextBatch(); batch.length > 0; batch = nextBatch()) {
			const asks = batch.map(askOf);
			const opening = openings();
			try {
				take(batch, asks, await store.hold(asks), opening === openings());
			} catch (error) {
				log.debug("shares of limits could not be asked for", { asks: asks.length, error });
				for (const share of batch) fail(share, error);
				break;
			}
			for (const share of batch) if (share.isLeftOut) leftOut.add(share);
		}
		// Sent again by the tick, and not at once.
		for (const share of leftOut) if (share.isLeftOut) dirty.add(share);
		// In the step in which it looked for the last time: what came between would wait for the tick.
		sending = undefined;
	}

	/** What somebody waits for, or lacks, comes before what is only told: of that there may be hundreds of statements. */
	function nextBatch(): readonly Share[] {
		const batch = new Set<Share>();
		for (const share of dirty) {
			if (batch.size >= ASKS_A_STATEMENT) break;
			dirty.delete(share);
			batch.add(share);
		}
		while (telling !== undefined && batch.size < ASKS_A_STATEMENT) {
			const { done, value } = telling.next();
			if (done) telling = undefined;
			else if (isUntold(value)) batch.add(value);
		}
		return [...batch];
	}

	/** What was granted behind the gate's opening the store knows. Of what is not used the next use decides, or who lacks it. */
	function isUntold(share: Share): boolean {
		const used = share.used();
		if (used === 0 || (share.openings === toldOpening && !share.isStale)) return false;
		share.isStale = true;
		share.amount = Math.min(share.amount, used);
		return true;
	}

	function askOf({ key, kind, limit, amount, need }: Share): ShareAsk {
		seq += 1;
		return { key, kind, limit, have: amount, need, seq };
	}

	/** `inTime`: the gate has not been closed since. */
	function take(
		batch: readonly Share[],
		asks: readonly ShareAsk[],
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
					// The store shall hear that it was not taken.
					dirty.add(share);
				} else if (more > 0) {
					// What was given back meanwhile stays given back.
					share.amount += more;
					share.isStale = false;
				}
				share.free = grant.free;
			}
			share.answered?.resolve();
			if (share.isReleased && share.amount === 0 && !share.isLeftOut && !dirty.has(share)) all.delete(idOf(share));
		}
	}

	/** What became of it is not known: something may have been granted that is not here. The store shall hear what is. */
	function fail(share: Share, error: unknown): void {
		dirty.add(share);
		share.answered?.reject(error);
	}

	function kick(): void {
		// Asks of the same turn go together.
		sending ??= Promise.resolve().then(send);
	}

	function asked(share: Share): Promise<void> {
		const used = share.used();
		share.need = used + 1;
		// What was admitted while there was no limit has no share yet, and others shall find it taken.
		share.amount = Math.max(share.amount, used);
		share.answered = Promise.withResolvers();
		dirty.add(share);
		const answer = share.answered.promise;
		// The one that sends may break off before this is asked.
		if (sending === undefined) kick();
		else void sending.then(kick);
		return answer.finally(() => {
			share.need = 0;
			share.answered = undefined;
		});
	}

	async function drawNow(share: Share): Promise<void> {
		for (const pauseMs of [...ASK_AGAIN_MS, undefined]) {
			try {
				await asked(share);
			} catch (cause) {
				throw unchecked(cause);
			}
			if (share.used() < share.amount) return;
			// Others use all of it: they have nothing to give.
			if (pauseMs === undefined || share.used() >= share.limit) break;
			await sleep(clock, pauseMs);
		}
		if (share.isLeftOut && share.used() < share.limit)
			throw unchecked(new Error("somebody holds the row of its share"));
		share.dryUntilMs = clock.monotonicMs() + DRY_MS;
	}

	function giveBack(share: Share): void {
		const used = share.used();
		if (share.amount <= used) return;
		share.amount = used;
		dirty.add(share);
		kick();
	}

	return {
		obtain(key, kind, used) {
			let share = all.get(idOf({ key, kind }));
			if (share === undefined) {
				share = createShare(key, kind, used, openings());
				all.set(idOf(share), share);
			}
			share.used = used;
			share.isReleased = false;
			return share;
		},
		release(share) {
			share.isReleased = true;
			share.amount = 0;
			dirty.add(share);
			kick();
		},
		draw(share) {
			share.drawing ??= drawNow(share).finally(() => {
				share.drawing = undefined;
			});
			return share.drawing;
		},
		limitTo(share, limit) {
			const opening = openings();
			if (limit < share.limit || opening !== share.openings) share.isStale = true;
			share.limit = limit;
			share.openings = opening;
			if (share.isStale) giveBack(share);
		},
		giveBack,
		tick() {
			if (openings() !== toldOpening) {
				toldOpening = openings();
				telling = all.values();
			}
			if (dirty.size > 0 || telling !== undefined) kick();
		},
		async sent() {
			while (sending !== undefined) await sending;
		},
	};
}

const unchecked = (cause: unknown) =>
	new Fault("service_unavailable", "The limits of this API key cannot be checked right now.", {
		cause,
		retryAfterS: 1,
	});

const idOf = ({ kind, key }: Pick<Share, "kind" | "key">) => `${kind} ${key}`;

function createShare(key: string, kind: LimitKind, used: () => number, openings: number): Share {
	return {
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
		contestedUntilMs: Number.NEGATIVE_INFINITY,
		drawing: undefined,
		need: 0,
		answered: undefined,
	};
}
