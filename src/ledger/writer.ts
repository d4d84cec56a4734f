import { type Clock, sleep } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { SlotPool } from "../base/slot-pool.ts";
import { DatabaseTimeout, isDatabaseDown } from "../db/outage.ts";
import { SettledColumns, type SettledEvent } from "./event.ts";
import { createFlushSchedule } from "./flush-schedule.ts";
import { reportNewSettlements } from "./ledger-counts.ts";
import { type AcknowledgeSettlement, createSettledQueue, type SettledBatch } from "./settled-queue.ts";
import { NONE_HELD, type SettleResult, settleBatch } from "./settling.ts";
import type { LedgerStore } from "./store.ts";

/** A running request. Its hold is recorded in Postgres if it still runs at the next flush. */
export interface OpenRequest {
	/** Returns the request's AdmittedEvent as JSON. */
	json(): string;
	isOpen(): boolean;
	/** Called when Postgres has recorded the hold, or when the request has ended. */
	readonly acknowledge?: (() => void) | undefined;
	/** Index in the writer's pool; only the writer sets it. */
	slot: number;
}

export interface WriterOptions {
	flushIntervalMs: number;
	/** Settlements per batch in normal operation. Building or acknowledging a batch blocks the event loop. */
	flushAt: number;
	batchMax: number;
	/** Settlements in the queue at which `isFull` is true. Until Postgres catches up, no requests are admitted. */
	queueMax: number;
}

export type Writer = ReturnType<typeof createWriter>;

/** Refusals of a single settlement before it moves to the end of the queue. */
const REFUSED_ALONE_MAX = 3;
/** Milliseconds before acknowledged settlements are sent again after a failure. */
const SEND_AGAIN_MS = 1_000;
/** Milliseconds between retries of settlements that wait for a locked row. */
const ASIDE_RETRY_MS = 250;

/** Settlements per batch of `sendAgain`: each settlement that the database knows costs it a look-up. */
const AGAIN_BATCH = 500;

const NOBODY = new SlotPool<OpenRequest>();
const NOTHING = new SettledColumns();

/**
 * Writes settlements to Postgres in batches, one batch at a time. A failed batch is repeated with the same ids, so
 * nothing is lost or counted twice. Settlements that need a locked row are set aside, so that they delay only their
 * account.
 */
export function createWriter(deps: { store: LedgerStore; clock: Clock; log: Log }, options: WriterOptions) {
	const { store, clock, log } = deps;
	/** Settlements to send. The batch in flight stays at the front until Postgres has it. */
	const settled = createSettledQueue(options.batchMax);
	/** Settlements that wait for a locked row. */
	const aside = createSettledQueue(options.batchMax);
	let asideDueMs = 0;
	/** Requests that started since the last flush. Most end before the next one and leave both pools. */
	let opened = new SlotPool<OpenRequest>();
	/** Requests that started before the last flush. Each that still runs at the next flush gets a row in Postgres. */
	let outlived = new SlotPool<OpenRequest>();
	const batchSize = createBatchSize(options.batchMax);
	const outage = createOutage(clock, log);
	const schedule = createFlushSchedule(clock, options.flushIntervalMs, {
		async flush(withOpen) {
			const result = await flush(withOpen);
			return result === "failed" || (await flushAside()) ? result : "failed";
		},
		isFull: () => settled.length() >= options.flushAt,
		isEmpty: () => settled.length() + aside.length() + opened.size + outlived.size === 0,
	});
	const { isStopped } = schedule;

	/** Flushes once. `withOpen`: also records requests that have run for a whole flush interval. */
	async function flush(withOpen: boolean): Promise<"done" | "more" | "failed"> {
		const batch = settled.lend(batchSize.now());
		// After failures batches are smaller, so settlements may remain in the queue.
		const leavesSome = settled.hasMore();
		const due = withOpen ? outlived : NOBODY;
		if (withOpen) {
			outlived = opened;
			opened = new SlotPool();
		}
		const open = [...due].filter((request) => request.isOpen());
		let held: ReadonlySet<number>;
		try {
			held = batch || open.length > 0 ? await send(batch, open) : NONE_HELD;
		} catch (error) {
			for (const request of due) request.slot = outlived.take(request);
			settled.takeBack();
			noteFailed(batch?.length ?? 0, error);
			return "failed";
		}
		if (isStopped()) return "failed";
		batchSize.worked();
		settled.remove();
		if (batch) acknowledge(batch, held);
		for (const request of due) request.acknowledge?.();
		due.clear();
		return leavesSome ? "more" : "done";
	}

	async function flushAside(): Promise<boolean> {
		if (aside.length() === 0 || clock.monotonicMs() < asideDueMs) return true;
		const batch = aside.lend(options.batchMax) as SettledBatch;
		let held: ReadonlySet<number>;
		try {
			held = await send(batch, []);
		} catch (error) {
			// Moves these settlements to the main queue, where batches shrink until the blocking settlement is found.
			aside.remove();
			settled.push(batch);
			noteFailed(0, error);
			return false;
		}
		if (isStopped()) return false;
		aside.remove();
		// Settlements whose rows are still locked go to the end of the queue, so that the others come first.
		acknowledge(batch, held);
		return true;
	}

	/** Acknowledges settlements, and sets aside those that wait for a locked row. */
	function acknowledge(batch: SettledBatch, held: ReadonlySet<number>): void {
		if (held.size > 0) {
			aside.append(batch.where((place) => held.has(place)));
			asideDueMs = clock.monotonicMs() + ASIDE_RETRY_MS;
		}
		batch.acknowledge(held);
	}

	/** Sends a batch. Returns the indexes of settlements that wait for a locked row. */
	async function send(batch: SettledBatch | undefined, open: readonly OpenRequest[]): Promise<ReadonlySet<number>> {
		const openJson = `[${open.map((request) => request.json()).join(",")}]`;
		const settledNow = await settleBatch(store, batch?.columns ?? NOTHING, openJson);
		outage.ended(settled.length());
		noteForgotten(settledNow);
		return settledNow.held;
	}

	function noteForgotten({ forgotten }: SettleResult): void {
		if (forgotten > 0)
			log.error("settlements exceed the database's grants; settling them as late", { settlements: forgotten });
	}

	async function sendAgain(acknowledged: Iterable<SettledEvent>): Promise<number> {
		let unknown = 0;
		let batch = new SettledColumns();
		for (const event of acknowledged) {
			batch.add(event);
			if (batch.length < AGAIN_BATCH) continue;
			unknown += await sendBatchAgain(batch);
			batch = new SettledColumns();
		}
		return unknown + (await sendBatchAgain(batch));
	}

	async function sendBatchAgain(columns: SettledColumns): Promise<number> {
		let unknown = 0;
		const counted = reportNewSettlements(store, (count) => (unknown += count));
		let batch = columns;
		while (batch.length > 0 && !isStopped()) {
			try {
				const settledNow = await settleBatch(counted, batch, "[]");
				batch = batch.where((place) => settledNow.held.has(place));
				if (batch.length > 0) await sleep(clock, ASIDE_RETRY_MS);
			} catch (error) {
				log.debug("resending settlements failed; retrying", { settlements: batch.length, error });
				await sleep(clock, SEND_AGAIN_MS);
			}
		}
		return unknown;
	}

	/** Logs a database outage once, at its start. Logs every refusal, because each concerns another settlement. */
	function noteFailed(settlements: number, error: unknown): void {
		const away = isDatabaseDown(error);
		if (away) {
			log.debug("a flush failed; retrying", { settlements, error });
			outage.began(settled.length(), error);
		} else {
			outage.ended(settled.length());
			log.warn("the database refused a flush; retrying", { settlements, error });
		}
		// A timeout may mean a batch that is too large, or a lock that other settlements do not need, so batches shrink.
		if (!away || error instanceof DatabaseTimeout) giveWay(settlements, away, error);
	}

	/** Halves the batch size after a failure. Once a single settlement fails alone, moves it to the end of the queue. */
	function giveWay(settlements: number, away: boolean, error: unknown): void {
		if (!batchSize.failed(settlements, settled.length() > 1)) return;
		if (!away)
			log.error("the database refuses a settlement repeatedly; sending others first", {
				settlement: JSON.stringify(settled.lend(1)?.columns.at(0)),
				error,
			});
		settled.takeBack();
		settled.rotate();
	}

	return {
		/** Adds a settlement. `acknowledge` is called with `ticket` when Postgres has the settlement. */
		settle(event: SettledEvent, acknowledge: AcknowledgeSettlement, ticket: number, nowMs: number) {
			settled.add(event, acknowledge, ticket, nowMs);
			schedule.flushLater();
			if (settled.length() >= options.flushAt) schedule.flushSoon();
		},
		/** Adds a running request. `now`: the next flush records it; otherwise the one after a whole interval. */
		open(request: OpenRequest, now = false) {
			request.slot = (now ? outlived : opened).take(request);
			schedule.flushLater();
		},
		/** Removes an ended request, unless a client waits for its acknowledgement. */
		ended(request: OpenRequest) {
			if (request.acknowledge !== undefined) return;
			if (!opened.release(request.slot, request)) outlived.release(request.slot, request);
		},
		hurry: schedule.hurry,
		/** Resolves when all settlements are in Postgres; rejects if the writer is stopped before that. */
		async drain() {
			while (settled.length() + aside.length() > 0) {
				if (isStopped()) throw new Error("the writer was stopped before it was drained");
				schedule.hurry();
				await schedule.running();
				if (settled.length() === 0 && aside.length() > 0) await sleep(clock, ASIDE_RETRY_MS);
			}
		},
		isFull: () => settled.length() + aside.length() >= options.queueMax,
		queued: () => settled.length() + aside.length(),
		/** Milliseconds since the oldest settlement that Postgres lacks was added; 0 if none. */
		oldestAgeMs() {
			const nowMs = clock.monotonicMs();
			return nowMs - Math.min(settled.sinceMs(), aside.sinceMs(), nowMs);
		},
		/** Ids of the settlements that wait to be sent. */
		waiting: (): ReadonlySet<string> => new Set([...settled.ids(), ...aside.ids()]),
		/**
		 * Sends acknowledged settlements again after a failover, because the new server may lack them. Returns how many it
		 * lacked, or the number of all if it does not know this epoch.
		 */
		sendAgain,
		/** Stops without flushing; queued settlements stay in the journal. */
		stop: schedule.stop,
	};
}

/** Size of batches. A failure halves it, so that a bad record does not block others long; a success doubles it. */
function createBatchSize(most: number) {
	let size = most;
	let failedAlone = 0;
	return {
		now: () => size,
		worked() {
			size = Math.min(size * 2, most);
			failedAlone = 0;
		},
		/** Returns true if a settlement has failed alone so often that the others should be sent before it. */
		failed(settlements: number, hasOthers: boolean): boolean {
			size = Math.max(1, Math.floor(settlements / 2));
			if (settlements !== 1) return false;
			failedAlone += 1;
			if (failedAlone < REFUSED_ALONE_MAX || !hasOthers) return false;
			failedAlone = 0;
			return true;
		},
	};
}

/** Logs an outage of Postgres once at its start and at its end. `settlements`: the number that waits. */
function createOutage(clock: Clock, log: Log) {
	let sinceMs: number | undefined;
	return {
		began(settlements: number, error: unknown): void {
			if (sinceMs !== undefined) return;
			sinceMs = clock.monotonicMs();
			log.warn("Postgres is unavailable; settlements are queued", { settlements, error });
		},
		ended(settlements: number): void {
			if (sinceMs === undefined) return;
			const awayMs = Math.round(clock.monotonicMs() - sinceMs);
			sinceMs = undefined;
			log.info("Postgres is available again; sending settlements", { settlements, awayMs });
		},
	};
}
