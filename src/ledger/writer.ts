import type { Clock } from "../base/clock.ts";
import { sleep } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { isDatabaseAway } from "../db/outage.ts";
import { DatabaseTimeout } from "../db/statements.ts";
import { createKeptBatches } from "./kept-batches.ts";
import type { Settled, Unsettled } from "./settling.ts";
import { settleBatch, unsettledOf } from "./settling.ts";
import type { LedgerStore } from "./store.ts";

/** A settlement on its way to Postgres. */
export interface QueuedSettlement extends Unsettled {
	/** The event as it stands in the journal. */
	readonly json: string;
	/** Postgres has it, now and for good. */
	acknowledge(): void;
}

/** A request that is still running: told to Postgres once it outlives a flush. */
export interface OpenRequest {
	/** An AdmittedEvent as JSON. */
	json(): string;
	isOpen(): boolean;
	/** Postgres knows that it is held, or it has ended meanwhile. */
	readonly acknowledge?: (() => void) | undefined;
}

export interface WriterOptions {
	flushIntervalMs: number;
	/**
	 * So many go out without waiting for the interval: a batch is made and acknowledged in one step of the event loop each,
	 * which others wait for.
	 */
	flushAt: number;
	batchMax: number;
	/** Beyond it `isFull`: no more requests are admitted until Postgres has caught up. */
	queueMax: number;
}

/**
 * The write-behind queue: batches go to Postgres one after the other, a failed one again with the same ids until it is
 * carried out. Nothing is dropped and nothing counted twice. What waits for a row that somebody holds steps aside and is
 * tried again by itself, so that only its own account waits.
 */
export interface Writer {
	settle(item: QueuedSettlement): void;
	/** `now`: with the next flush; else only if it outlives that. */
	open(request: OpenRequest, now?: boolean): void;
	/** It does not run any more: it is let go, unless somebody waits for its acknowledgement. */
	ended(request: OpenRequest): void;
	/** Flushes without waiting for the interval. */
	hurry(): void;
	/** Resolves when all settlements are in Postgres; rejects if the writer was stopped before. */
	drain(): Promise<void>;
	isFull(): boolean;
	queued(): number;
	/** Age of the oldest settlement that Postgres does not have, milliseconds; 0 if none. */
	oldestAgeMs(): number;
	/**
	 * Sends again what was acknowledged lately: the database is another one now, which may not have it. Gives how many it
	 * did not know; all of them if it does not know this epoch.
	 */
	sendAgain(): Promise<number>;
	/** Stops without flushing; what is queued stays in the journal. */
	stop(): void;
}

const RETRY_MS_MIN = 50;
const RETRY_MS_MAX = 1_000;
/** A settlement that is refused alone this often lets the others pass; it is sent again behind them. */
const REFUSED_ALONE_MAX = 3;
/** How often those are tried again that wait for a row. */
const ASIDE_RETRY_MS = 250;

interface Queued {
	readonly item: QueuedSettlement;
	readonly sinceMs: number;
}

const NONE: ReadonlySet<Queued> = new Set();
const NOBODY: ReadonlySet<OpenRequest> = new Set();

export function createWriter(deps: { store: LedgerStore; clock: Clock; log: Log }, options: WriterOptions): Writer {
	const { store, clock, log } = deps;
	/** What is being sent stays at its head until Postgres has it. */
	const settled: Queued[] = [];
	/** Somebody holds a row that they need. */
	let aside: Queued[] = [];
	let asideDueMs = 0;
	/** Acknowledged lately. */
	const kept = createKeptBatches();
	/** Most end before a flush comes, and are in neither any more: what stays there survives young collections. */
	let opened = new Set<OpenRequest>();
	/** Opened before the last flush: those that still run are worth a row. */
	let outlived = new Set<OpenRequest>();
	/** Halved by each failure, so that one bad record cannot hold up all others for long; grows again with success. */
	let batchMax = options.batchMax;
	let refusedAlone = 0;
	/** When the outage began that settlements wait for; undefined while Postgres answers. */
	let awaySinceMs: number | undefined;
	let retryMs = RETRY_MS_MIN;
	let running: Promise<void> | undefined;
	let hurried = false;
	let beginsSoon = false;
	let cancelTimer: (() => void) | undefined;
	let stopped = false;

	function schedule(): void {
		if (cancelTimer || running || stopped) return;
		cancelTimer = clock.after(options.flushIntervalMs, start);
	}

	function start(): void {
		hurried = true;
		cancelTimer?.();
		cancelTimer = undefined;
		begin();
	}

	/** Not in the step of the request that fills the batch: its answer is still to go out. */
	function beginSoon(): void {
		if (beginsSoon || running) return;
		beginsSoon = true;
		clock.after(0, () => {
			beginsSoon = false;
			begin();
		});
	}

	function begin(): void {
		if (running || stopped) return;
		running = run().finally(() => {
			running = undefined;
			if (settled.length + aside.length + opened.size + outlived.size > 0) schedule();
		});
	}

	async function run(): Promise<void> {
		while (!stopped && (hurried || settled.length >= options.flushAt)) {
			const withOpen = hurried;
			hurried = false;
			if ((await flush(withOpen)) && (await flushAside())) {
				retryMs = RETRY_MS_MIN;
				continue;
			}
			if (stopped) return;
			await sleep(clock, retryMs);
			retryMs = Math.min(retryMs * 2, RETRY_MS_MAX);
			hurried = true;
		}
	}

	/** `withOpen`: the interval is over for those that run, too. */
	async function flush(withOpen: boolean): Promise<boolean> {
		const batch = settled.slice(0, batchMax);
		const due = withOpen ? outlived : NOBODY;
		if (withOpen) {
			outlived = opened;
			opened = new Set();
		}
		const open = [...due].filter((request) => request.isOpen());
		let held: ReadonlySet<Queued>;
		try {
			held = batch.length > 0 || open.length > 0 ? await send(batch, open) : NONE;
		} catch (error) {
			outlived = new Set([...due, ...outlived]);
			noteFailed(batch, error);
			return false;
		}
		if (stopped) return false;
		// A smaller batch than usual left some behind.
		hurried ||= batch.length === batchMax && settled.length > batch.length;
		batchMax = Math.min(batchMax * 2, options.batchMax);
		refusedAlone = 0;
		settled.splice(0, batch.length);
		if (held.size > 0) {
			asideDueMs = clock.monotonicMs() + ASIDE_RETRY_MS;
			aside.push(...held);
		}
		acknowledge(batch, held);
		for (const request of due) request.acknowledge?.();
		return true;
	}

	async function flushAside(): Promise<boolean> {
		if (aside.length === 0 || clock.monotonicMs() < asideDueMs) return true;
		const batch = aside.slice(0, options.batchMax);
		let held: ReadonlySet<Queued>;
		try {
			held = await send(batch, []);
		} catch (error) {
			// Back among the others, where one that is in the way is found.
			settled.push(...aside.splice(0, batch.length));
			noteFailed([], error);
			return false;
		}
		if (stopped) return false;
		// Behind the others, whose rows may be free.
		aside = [...aside.slice(batch.length), ...held];
		asideDueMs = clock.monotonicMs() + ASIDE_RETRY_MS;
		acknowledge(batch, held);
		return true;
	}

	function acknowledge(batch: readonly Queued[], held: ReadonlySet<Queued>): void {
		const carriedOut = held.size === 0 ? batch : batch.filter((queued) => !held.has(queued));
		for (const { item } of carriedOut) item.acknowledge();
		kept.add(jsonOf(carriedOut), carriedOut.length, clock.monotonicMs());
	}

	/** Gives those that wait for a row that somebody holds. */
	async function send(batch: readonly Queued[], open: readonly OpenRequest[]): Promise<ReadonlySet<Queued>> {
		const openJson = `[${open.map((request) => request.json()).join(",")}]`;
		const settledNow = await settleBatch(
			store,
			batch.map(({ item }) => item),
			openJson,
		);
		noteAnswer();
		noteForgotten(settledNow);
		const { held } = settledNow;
		return held.size === 0 ? NONE : new Set(batch.filter(({ item }) => held.has(item)));
	}

	function noteForgotten({ forgotten }: Settled<Unsettled>): void {
		if (forgotten > 0)
			log.error("settlements pass what the database says that it granted; they are settled as late", {
				settlements: forgotten,
			});
	}

	async function sendAgain(): Promise<number> {
		let unknown = 0;
		for (const json of kept.texts()) {
			let batch = unsettledOf(json);
			while (batch.length > 0 && !stopped) {
				try {
					const settledNow = await settleBatch(store, batch, "[]");
					unknown += settledNow.fresh + settledNow.late;
					batch = batch.filter((one) => settledNow.held.has(one));
					if (batch.length > 0) await sleep(clock, ASIDE_RETRY_MS);
				} catch (error) {
					log.debug("settlements could not be sent again; trying again", { settlements: batch.length, error });
					await sleep(clock, RETRY_MS_MAX);
				}
			}
		}
		return unknown;
	}

	/** An outage is said once, when it begins, and says nothing about the records; a refusal is about one of them. */
	function noteFailed(batch: readonly Queued[], error: unknown): void {
		const away = isDatabaseAway(error);
		if (away) {
			log.debug("a flush was not carried out; sending it again", { settlements: batch.length, error });
			noteAway(error);
		} else {
			noteAnswer();
			log.warn("a flush was refused; sending it again", { settlements: batch.length, error });
		}
		// What takes too long may be too much, or wait for a lock that others need not wait for.
		if (!away || error instanceof DatabaseTimeout) giveWay(batch, away, error);
	}

	function noteAway(error: unknown): void {
		if (awaySinceMs !== undefined) return;
		awaySinceMs = clock.monotonicMs();
		log.warn("Postgres is away; settlements wait for it", { settlements: settled.length, error });
	}

	function noteAnswer(): void {
		if (awaySinceMs === undefined) return;
		const awayMs = Math.round(clock.monotonicMs() - awaySinceMs);
		awaySinceMs = undefined;
		log.info("Postgres answers again; settlements go on", { settlements: settled.length, awayMs });
	}

	/** Smaller batches, down to the record that is in the way, which then lets the others pass. */
	function giveWay(batch: readonly Queued[], away: boolean, error: unknown): void {
		batchMax = Math.max(1, Math.floor(batch.length / 2));
		if (batch.length !== 1) return;
		refusedAlone += 1;
		const [head] = settled;
		if (refusedAlone < REFUSED_ALONE_MAX || settled.length < 2 || head === undefined) return;
		if (!away)
			log.error("a settlement is refused again and again; others pass it", { settlement: head.item.json, error });
		refusedAlone = 0;
		settled.push(head);
		settled.shift();
	}

	return {
		settle(item) {
			settled.push({ item, sinceMs: clock.monotonicMs() });
			schedule();
			if (settled.length >= options.flushAt) beginSoon();
		},
		open(request, now = false) {
			(now ? outlived : opened).add(request);
			schedule();
		},
		ended(request) {
			if (request.acknowledge === undefined && !opened.delete(request)) outlived.delete(request);
		},
		hurry: start,
		async drain() {
			while (settled.length + aside.length > 0) {
				if (stopped) throw new Error("the writer was stopped before it was drained");
				start();
				await running;
				if (settled.length === 0 && aside.length > 0) await sleep(clock, ASIDE_RETRY_MS);
			}
		},
		isFull: () => settled.length + aside.length >= options.queueMax,
		queued: () => settled.length + aside.length,
		oldestAgeMs() {
			let sinceMs = clock.monotonicMs();
			for (const queue of [settled, aside]) for (const queued of queue) sinceMs = Math.min(sinceMs, queued.sinceMs);
			return clock.monotonicMs() - sinceMs;
		},
		sendAgain,
		stop() {
			stopped = true;
			cancelTimer?.();
		},
	};
}

const jsonOf = (batch: readonly Queued[]) => `[${batch.map(({ item }) => item.json).join(",")}]`;
