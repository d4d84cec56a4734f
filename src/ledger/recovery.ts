import { type Clock, sleep } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { isDatabaseDown } from "../db/outage.ts";
import type { SettledEvent } from "./event.ts";
import type { JournalDisk } from "./journal-disk.ts";
import { readJournal } from "./journal-reader.ts";
import { needsBusyRow, settleLate } from "./settling.ts";
import { LeaseExceeded, type LedgerStore } from "./store.ts";

const BATCH_REQUESTS = 500;
const RETRY_MS = 200;
const RETRIES_MAX = 300;
/** Settlements that a replay keeps in memory. Above it, charges that exceed a lease spend available credit at once. */
const HELD_MAX = 10_000;
/** Refusals of a single settlement before it is set aside, so that the others continue. */
const REFUSED_ALONE_MAX = 3;
/** Settlements set aside before the replay ends and is retried: so many refusals mean a fault of the database. */
const REFUSED_MAX = 100;

/** Thrown if the database refused some settlements. Only the journal has them, so it is kept and retried. */
export class SettlementsRefused extends Error {}

export interface ReplayDeps {
	clock: Clock;
	log: Log;
	/** True when the process is about to stop: the replay ends and continues at the next start. */
	isStopping: () => boolean;
	store: LedgerStore;
	/** Called before a long wait for locked rows, perhaps repeatedly. Resolves when the replay may start to wait. */
	stepAside(): Promise<void>;
	refused: SettledEvent[];
	/** True once more than `HELD_MAX` settlements are waiting in memory. */
	isHeldFull?: boolean;
}

/**
 * Writes a journal's settlements to Postgres while reading it, then closes the epoch. Each step may be repeated after a
 * crash. Memory holds one segment, one batch, the requests that were running, and up to `HELD_MAX` settlements.
 */
export async function replayJournal(
	deps: ReplayDeps,
	disk: JournalDisk,
): Promise<{ settled: number; recovered: number; damagedBytes: number }> {
	const reader = readJournal(disk, deps.clock.wallMs());
	let settled = 0;
	let batch: SettledEvent[] = [];
	let held: SettledEvent[] = [];
	const settle = async (): Promise<void> => {
		held.push(...(await settleBatch(deps, batch)));
		batch = [];
		while (held.length > HELD_MAX) {
			await deps.stepAside();
			held = await settleHeld({ ...deps, isHeldFull: true }, held);
		}
	};
	for (;;) {
		const next = reader.next();
		if (next.done) {
			const { recovered, damagedBytes } = next.value;
			for (let at = 0; at < recovered.length; at += BATCH_REQUESTS) {
				await settle();
				batch = recovered.slice(at, at + BATCH_REQUESTS);
			}
			await settle();
			while (held.length > 0) {
				await closeOthers(deps, held);
				await deps.stepAside();
				held = await settleHeld(deps, held);
			}
			if (deps.refused.length > 0) {
				await closeOthers(deps, deps.refused);
				throw new SettlementsRefused(`${deps.refused.length} settlements of the journal are refused`);
			}
			if (!(await closeFree(deps))) {
				await deps.stepAside();
				await closeEpoch(deps);
			}
			return { settled, recovered: recovered.length, damagedBytes };
		}
		settled += 1;
		batch.push(next.value);
		if (batch.length >= BATCH_REQUESTS) await settle();
	}
}

/**
 * Settles a batch. Returns the settlements that must wait for a locked row, or because their lease is too small. A
 * lease is too small after an unreadable record or a failover that lost a grant.
 */
async function settleBatch(deps: ReplayDeps, batch: readonly SettledEvent[]): Promise<readonly SettledEvent[]> {
	const { store, log } = deps;
	if (batch.length === 0) return [];
	let refusals = 0;
	// Shrinks as settlements are stored, so that a retry after a lost connection has less to do.
	const left = new Set(batch);
	const waiting = await retryUntilDone(deps, async () => {
		try {
			const { late, busy } = await store.flush([...left], "[]");
			if (!late) return [...left].filter((one) => needsBusyRow(one, busy));
			return await settleLate(store, [...left], (one) => left.delete(one));
		} catch (error) {
			const isExceeded = error instanceof LeaseExceeded;
			if (!isExceeded && (isDatabaseDown(error) || deps.isStopping())) throw error;
			if (batch.length > 1) return undefined;
			if (!isExceeded) {
				refusals += 1;
				if (refusals < REFUSED_ALONE_MAX) throw error;
				return setAside(deps, batch, error);
			}
			log.error("a journal's charges exceed its lease; settling them as late", { error });
			if (deps.isHeldFull) return settleLate(store, [...left]);
			// These settlements wait for the end of the replay, when they may be charged to the account's available credit.
			return [...left];
		}
	});
	if (waiting !== undefined) return waiting;
	const each: SettledEvent[] = [];
	for (const one of left) each.push(...(await settleBatch(deps, [one])));
	return each;
}

/** Sets a refused settlement aside, so that it delays neither other settlements nor other accounts' credit. */
function setAside(
	{ refused, log }: ReplayDeps,
	batch: readonly SettledEvent[],
	error: unknown,
): readonly SettledEvent[] {
	if (refused.length >= REFUSED_MAX) throw error;
	refused.push(...batch);
	log.error("the database refuses a settlement of a journal repeatedly; keeping the journal", {
		settlement: JSON.stringify(batch[0]),
		error,
	});
	return [];
}

async function settleHeld(deps: ReplayDeps, held: readonly SettledEvent[]): Promise<SettledEvent[]> {
	await sleep(deps.clock, RETRY_MS);
	const still: SettledEvent[] = [];
	for (let at = 0; at < held.length; at += BATCH_REQUESTS) {
		still.push(...(await settleBatch(deps, held.slice(at, at + BATCH_REQUESTS))));
	}
	return still;
}

/** Closes the leases that no waiting settlement needs, so that their credit becomes available again. */
async function closeOthers(deps: ReplayDeps, held: readonly SettledEvent[]): Promise<void> {
	const keep = [...new Set(held.flatMap(({ account, key, budgets = [] }) => [account, key, ...budgets]))];
	for (;;) {
		const { closed } = await retryUntilDone(deps, () => deps.store.close(keep));
		if (closed === 0) return;
	}
}

type CloseDeps = Pick<ReplayDeps, "clock" | "log" | "isStopping"> & { store: Pick<LedgerStore, "close"> };

/** Closes all leases in steps, waiting for locked rows, then ends the epoch. */
export async function closeEpoch(deps: CloseDeps): Promise<void> {
	while (!(await closeFree(deps))) await sleep(deps.clock, RETRY_MS);
}

/** Closes all leases whose rows are not locked. False if locked ones remain. */
async function closeFree(deps: CloseDeps): Promise<boolean> {
	for (;;) {
		const { closed, done } = await retryUntilDone(deps, () => deps.store.close());
		if (done || closed === 0) return done;
	}
}

/** Repeats `step` until it succeeds or the process is about to stop. */
export async function retryUntilDone<T>(
	{ clock, log, isStopping }: Pick<ReplayDeps, "clock" | "log" | "isStopping">,
	work: () => Promise<T>,
): Promise<T> {
	for (let attempt = 1; ; attempt++) {
		if (isStopping()) throw new Error("stopping");
		try {
			return await work();
		} catch (error) {
			if (attempt >= RETRIES_MAX) throw error;
			log.warn("a step of a replay failed; retrying", { error });
			await sleep(clock, RETRY_MS);
		}
	}
}
