import type { Clock } from "../base/clock.ts";
import { sleep } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { isDatabaseAway } from "../db/outage.ts";
import type { SettledEvent } from "./event.ts";
import type { JournalDisk } from "./journal-disk.ts";
import { readJournal } from "./journal-reader.ts";
import { isHeld, settleLate } from "./settling.ts";
import type { LedgerStore } from "./store.ts";
import { LeaseExceeded } from "./store.ts";

const BATCH_REQUESTS = 500;
const RETRY_MS = 200;
const RETRIES_MAX = 300;
/**
 * Settlements that wait for a row that somebody holds, or that their lease does not cover; beyond it the replay waits with
 * the former, and has the latter charged to what is available at once.
 */
const HELD_MAX = 10_000;
/** A settlement that is refused alone this often is set aside, and the others go on. */
const REFUSED_ALONE_MAX = 3;
/** Beyond it the database refuses whatever it is asked: the journal is tried again as a whole, later. */
const REFUSED_MAX = 100;

/** The database took all of it but some records, which are on no other record: it stays, and is tried again. */
export class RecordsRefused extends Error {}

export interface HandInDeps {
	clock: Clock;
	log: Log;
	/** The process is about to end: what is not done is left to the next start. */
	isStopping: () => boolean;
	store: LedgerStore;
	/**
	 * Does what waits for rows that somebody holds, however long. `isInMemory`: what is to be settled is, for which there may be
	 * no room: then it throws, and all of it is to begin anew.
	 */
	whileHeld<T>(work: () => Promise<T>, isInMemory: boolean): Promise<T>;
	/** What is set aside. */
	refused: SettledEvent[];
}

/**
 * Brings a journal into Postgres as it is read, and closes the epoch. Every step may be repeated after a crash. What is in
 * memory meanwhile is one segment, one batch, and what the journal left open.
 */
export async function handIn(
	deps: HandInDeps,
	disk: JournalDisk,
): Promise<{ settled: number; recovered: number; damagedBytes: number }> {
	const reader = readJournal(disk, deps.clock.wallMs());
	let settled = 0;
	let batch: SettledEvent[] = [];
	let held: SettledEvent[] = [];
	const settle = async (): Promise<void> => {
		held.push(...(await settleBatch(deps, batch)));
		batch = [];
		if (held.length <= HELD_MAX) return;
		await deps.whileHeld(async () => {
			while (held.length > HELD_MAX) held = await settleHeld(deps, held, settleLate);
		}, true);
	};
	const untilSettled = async (): Promise<void> => {
		for (;;) {
			held = await settleHeld(deps, held);
			if (held.length === 0) return;
			await closeOthers(deps, held);
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
			if (held.length > 0) {
				await closeOthers(deps, held);
				await deps.whileHeld(untilSettled, true);
			}
			if (deps.refused.length > 0) {
				await closeOthers(deps, deps.refused);
				throw new RecordsRefused(`${deps.refused.length} settlements of the journal are refused`);
			}
			if (!(await closeFree(deps))) await deps.whileHeld(() => closeEpoch(deps), false);
			return { settled, recovered: recovered.length, damagedBytes };
		}
		settled += 1;
		batch.push(next.value);
		if (batch.length >= BATCH_REQUESTS) await settle();
	}
}

/** Gives those that it did not cover and that still wait. */
type SettleUncovered = (store: LedgerStore, uncovered: readonly SettledEvent[]) => Promise<readonly SettledEvent[]>;

/** Behind all others their leases are being closed, and spend what they still have on them first. */
const untilClosing: SettleUncovered = async (_store, uncovered) => uncovered;

/**
 * Gives those that wait: for a row that somebody holds, or since their lease does not cover them. Of a settlement that
 * cannot be read what was charged is unknown, and others may have spent the difference since; a server that took over may
 * not know a grant. What credit does not cover then is written off, of that account; the others' go to their leases.
 */
async function settleBatch(
	deps: HandInDeps,
	batch: readonly SettledEvent[],
	settleUncovered = untilClosing,
): Promise<readonly SettledEvent[]> {
	const { store, log } = deps;
	if (batch.length === 0) return [];
	let refusals = 0;
	// Of a connection that fails again and again each finds less to do than the one before.
	const left = new Set(batch);
	const waiting = await untilDone(deps, async () => {
		try {
			const { late, busy } = await store.flush([...left], "[]");
			if (!late) return [...left].filter((one) => isHeld(one, busy));
			return await settleLate(store, [...left], (one) => left.delete(one));
		} catch (error) {
			const isExceeded = error instanceof LeaseExceeded;
			if (!isExceeded && (isDatabaseAway(error) || deps.isStopping())) throw error;
			if (batch.length > 1) return undefined;
			if (!isExceeded) {
				refusals += 1;
				if (refusals < REFUSED_ALONE_MAX) throw error;
				return setAside(deps, batch, error);
			}
			log.error("a journal claims more than its lease holds; it is settled as late", { error });
			return settleUncovered(store, [...left]);
		}
	});
	if (waiting !== undefined) return waiting;
	const each: SettledEvent[] = [];
	for (const one of left) each.push(...(await settleBatch(deps, [one], settleUncovered)));
	return each;
}

/** One record must not keep what all others are owed, and the credit of all accounts, from them. */
function setAside(
	{ refused, log }: HandInDeps,
	batch: readonly SettledEvent[],
	error: unknown,
): readonly SettledEvent[] {
	if (refused.length >= REFUSED_MAX) throw error;
	refused.push(...batch);
	log.error("a settlement of a journal is refused again and again; the others go on, and the journal stays", {
		settlement: JSON.stringify(batch[0]),
		error,
	});
	return [];
}

async function settleHeld(
	deps: HandInDeps,
	held: readonly SettledEvent[],
	settleUncovered = untilClosing,
): Promise<SettledEvent[]> {
	await sleep(deps.clock, RETRY_MS);
	const still: SettledEvent[] = [];
	for (let at = 0; at < held.length; at += BATCH_REQUESTS) {
		still.push(...(await settleBatch(deps, held.slice(at, at + BATCH_REQUESTS), settleUncovered)));
	}
	return still;
}

/** What waits of one account keeps others' credit from nobody: what nothing is to be settled on is closed. */
async function closeOthers(deps: HandInDeps, held: readonly SettledEvent[]): Promise<void> {
	const keep = [...new Set(held.flatMap(({ account, key, budgets = [] }) => [account, key, ...budgets]))];
	for (;;) {
		const { closed } = await untilDone(deps, () => deps.store.close(keep));
		if (closed === 0) return;
	}
}

type CloseDeps = Pick<HandInDeps, "clock" | "log" | "isStopping"> & { store: Pick<LedgerStore, "close"> };

/** Closes all leases, some at a time, and ends the epoch; what somebody holds is waited for. */
export async function closeEpoch(deps: CloseDeps): Promise<void> {
	while (!(await closeFree(deps))) await sleep(deps.clock, RETRY_MS);
}

/** False if somebody holds what is left. */
async function closeFree(deps: CloseDeps): Promise<boolean> {
	for (;;) {
		const { closed, done } = await untilDone(deps, () => deps.store.close());
		if (done || closed === 0) return done;
	}
}

/** Again and again, until the process is about to end. */
export async function untilDone<T>(
	{ clock, log, isStopping }: Pick<HandInDeps, "clock" | "log" | "isStopping">,
	work: () => Promise<T>,
): Promise<T> {
	for (let attempt = 1; ; attempt++) {
		if (isStopping()) throw new Error("stopping");
		try {
			return await work();
		} catch (error) {
			if (attempt >= RETRIES_MAX) throw error;
			log.warn("a step of the recovery was not carried out; trying again", { error });
			await sleep(clock, RETRY_MS);
		}
	}
}
