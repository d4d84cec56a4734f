import type { Clock } from "../base/clock.ts";
import { sleep } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { isDatabaseAway } from "../db/outage.ts";
import { DatabaseTimeout } from "../db/statements.ts";
import type { LedgerStore } from "./store.ts";

/** A settlement on its way to Postgres. */
export interface QueuedSettlement {
	/** A SettledEvent as JSON. */
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
	acknowledge?(): void;
}

export interface WriterOptions {
	flushIntervalMs: number;
	batchMax: number;
	/** Beyond it `isFull`: no more requests are admitted until Postgres has caught up. */
	queueMax: number;
}

/**
 * The write-behind queue: batches go to Postgres one after the other, a failed one again with the same ids until it is
 * carried out. Nothing is dropped and nothing counted twice.
 */
export interface Writer {
	settle(item: QueuedSettlement): void;
	/** `now`: with the next flush; else only if it outlives that. */
	open(request: OpenRequest, now?: boolean): void;
	/** Flushes without waiting for the interval. */
	hurry(): void;
	/** Resolves when all settlements are in Postgres; rejects if the writer was stopped before. */
	drain(): Promise<void>;
	isFull(): boolean;
	queued(): number;
	/** Age of the oldest settlement that Postgres does not have, milliseconds; 0 if none. */
	oldestAgeMs(): number;
	/** Stops without flushing; what is queued stays in the journal. */
	stop(): void;
}

const RETRY_MS_MIN = 50;
const RETRY_MS_MAX = 1_000;
/** A settlement that is refused alone this often lets the others pass; it is sent again behind them. */
const REFUSED_ALONE_MAX = 3;

interface Queued {
	readonly item: QueuedSettlement;
	readonly sinceMs: number;
}

export function createWriter(deps: { store: LedgerStore; clock: Clock; log: Log }, options: WriterOptions): Writer {
	const { store, clock, log } = deps;
	/** What is being sent stays at its head until Postgres has it. */
	const settled: Queued[] = [];
	let opened: OpenRequest[] = [];
	/** Opened before the last flush: those that still run are worth a row. */
	let outlived: OpenRequest[] = [];
	/** Halved by each failure, so that one bad record cannot hold up all others for long; grows again with success. */
	let batchMax = options.batchMax;
	let refusedAlone = 0;
	/** When the outage began that settlements wait for; undefined while Postgres answers. */
	let awaySinceMs: number | undefined;
	let retryMs = RETRY_MS_MIN;
	let running: Promise<void> | undefined;
	let hurried = false;
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
		if (running || stopped) return;
		running = run().finally(() => {
			running = undefined;
			if (settled.length > 0 || opened.length > 0 || outlived.length > 0) schedule();
		});
	}

	async function run(): Promise<void> {
		while (!stopped && (hurried || settled.length >= options.batchMax)) {
			hurried = false;
			if (await flush()) {
				retryMs = RETRY_MS_MIN;
				continue;
			}
			if (stopped) return;
			await sleep(clock, retryMs);
			retryMs = Math.min(retryMs * 2, RETRY_MS_MAX);
			hurried = true;
		}
	}

	async function flush(): Promise<boolean> {
		const batch = settled.slice(0, batchMax);
		const due = outlived;
		outlived = opened;
		opened = [];
		const open = due.filter((request) => request.isOpen());
		try {
			if (batch.length > 0 || open.length > 0) await send(batch, open);
		} catch (error) {
			outlived = [...due, ...outlived];
			noteFailed(batch, error);
			return false;
		}
		if (stopped) return false;
		// A smaller batch than usual left some behind.
		hurried ||= batch.length === batchMax && settled.length > batch.length;
		batchMax = Math.min(batchMax * 2, options.batchMax);
		refusedAlone = 0;
		settled.splice(0, batch.length);
		for (const { item } of batch) item.acknowledge();
		for (const request of due) request.acknowledge?.();
		return true;
	}

	async function send(batch: readonly Queued[], open: readonly OpenRequest[]): Promise<void> {
		await deliver(batch, open);
		noteAnswer();
	}

	async function deliver(batch: readonly Queued[], open: readonly OpenRequest[]): Promise<void> {
		const settledJson = `[${batch.map(({ item }) => item.json).join(",")}]`;
		const openJson = `[${open.map((request) => request.json()).join(",")}]`;
		if ((await store.flush(settledJson, openJson)) === "ok") return;
		for (const { item } of batch) await store.settleLate(item.json);
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
		},
		open(request, now = false) {
			(now ? outlived : opened).push(request);
			schedule();
		},
		hurry: start,
		async drain() {
			while (settled.length > 0) {
				if (stopped) throw new Error("the writer was stopped before it was drained");
				start();
				await running;
			}
		},
		isFull: () => settled.length >= options.queueMax,
		queued: () => settled.length,
		oldestAgeMs() {
			let sinceMs = Number.POSITIVE_INFINITY;
			for (const queued of settled) sinceMs = Math.min(sinceMs, queued.sinceMs);
			return settled.length === 0 ? 0 : clock.monotonicMs() - sinceMs;
		},
		stop() {
			stopped = true;
			cancelTimer?.();
		},
	};
}
