import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { ControlEntry } from "../cluster/control-log.ts";
import type { Gate } from "../cluster/gate.ts";
import { type EndOfEpoch, type HeartbeatDeps, type HeartbeatStore, startHeartbeat } from "../cluster/heartbeat.ts";
import { createJournal, type JournalMode } from "./journal.ts";
import type { JournalDisk } from "./journal-disk.ts";
import type { JournalOwner, JournalRoot } from "./journal-root.ts";
import { createLedger, type Ledger } from "./ledger.ts";
import type { LedgerCounts } from "./ledger-counts.ts";
import type { KeptJournals } from "./lost-journal.ts";
import { createRecallAnswers } from "./recall-answers.ts";
import { closeEpoch, retryUntilDone } from "./recovery.ts";
import { createSlices } from "./slices.ts";
import type { LedgerStore } from "./store.ts";
import { createWriter } from "./writer.ts";

/** Reads an epoch's start and end by the database's clock. Number and start together identify an epoch. */
export type ReadEpochTimes = (
	epoch: JournalOwner,
) => Promise<{ readonly began?: string | undefined; readonly ended?: string | undefined }>;

/** Dependencies of an epoch, which the simulation replaces to run without database, disk and real time. */
export interface EpochDeps {
	clock: Clock;
	log: Log;
	newUuid(): string;
	gate: Gate;
	heartbeats: HeartbeatStore;
	storeFor(instanceId: string, epoch: number): LedgerStore;
	journals: JournalRoot;
	timesOf: ReadEpochTimes;
	/** Journals that are kept on disk although Postgres has their settlements, in case a failover loses commits. */
	kept: KeptJournals;
	counts?: LedgerCounts;
	/** Applies a control entry to the keys and accounts in memory. The ledger applies the entry after this call. */
	apply(entry: ControlEntry): void;
	/** Called when an epoch starts at control entry `seq`. Clears the caches, which may lack earlier entries. */
	reset(seq: number): void;
	/** Called when the journal's disk failed. A power failure may lose acknowledged records, so the process must end. */
	onDiskFailed(error: unknown): void;
}

export interface EpochOptions {
	instanceId: string;
	mode: JournalMode;
	leaseTtlMs: number;
	flushIntervalMs?: number;
	segmentBytesMax?: number;
	/** Milliseconds for which a journal stays on disk after Postgres has all its settlements. */
	keepMs?: number;
	idleReturnMs?: number;
}

export type Epoch = Awaited<ReturnType<typeof beginEpoch>>;

const HEARTBEAT_MS = 1_000;
const MARGIN_MS_MAX = 2_000;
const FLUSH_INTERVAL_MS = 100;
/** Usual settlements per batch (0.5 ms). 256 would cost 1 µs more per request; 1,000 would delay other requests. */
const FLUSH_AT = 512;
/**
 * Settlements per batch after an outage, when many wait. A batch takes 2 ms of the event loop. Large batches lock
 * leases and sync the database's disk less often, so a row costs Postgres a fifth less than with 1,000.
 */
const FLUSH_BATCH_MAX = 4_000;
const FLUSH_QUEUE_MAX = 200_000;
/** Milliseconds of draining for an epoch that ended before it admitted a request. */
const ABANDONED_DRAIN_MS = 5_000;

/**
 * Starts an epoch of this instance with its ledger, its heartbeat and its answers to recalls. The epoch admits requests
 * once it is live; it does not become live if `isStopping`. When the epoch may no longer admit, `onEnded` is called,
 * and the caller then calls `retire`.
 */
export async function beginEpoch(
	parts: EpochDeps,
	options: EpochOptions,
	events: { onEnded(why: EndOfEpoch): void; isStopping(): boolean },
) {
	const { clock, log } = parts;
	const { instanceId } = options;
	let ledger: Ledger | undefined;
	let closing = true;
	let telling: Promise<void> | undefined;
	const { heartbeat, claim } = await joinUnused(parts, options, {
		apply(entry) {
			parts.apply(entry);
			// A budget without a slice on this instance has no credit here, so its changed limit needs no action.
			if (entry.kind === "budget") ledger?.limitChanged(entry.subject, entry.payload.lowered === true);
		},
		onEnded: (why) => events.onEnded(why),
		isStopping: events.isStopping,
	});
	const number = heartbeat.epoch;
	parts.reset(heartbeat.appliedSeq());
	const store = parts.storeFor(instanceId, number);
	const present = async () => (await parts.heartbeats.position()).server;
	/** Label of the database server that has all acknowledged settlements of this epoch. */
	let completeOn: string | undefined = heartbeat.server;
	const close = async () => {
		const deps = { store, clock, log, isStopping: () => !closing };
		// Repeats until one server has all settlements and the epoch's end, because a failover may happen at any step.
		for (;;) {
			await telling;
			const server = await retryUntilDone(deps, present);
			if (server !== completeOn) await tellAgain();
			await closeEpoch(deps);
			ended = await retryUntilDone(deps, async () => (await parts.timesOf({ id: instanceId, epoch: number })).ended);
			if (server === completeOn && server === (await retryUntilDone(deps, present))) return;
		}
	};
	let ended: string | undefined;
	// Keeps the journal instead of deleting it, because a failover may lose the commits of its settlements.
	const destroy = () => parts.kept.keep(claim, { id: instanceId, epoch: number }, ended);
	try {
		ledger = buildLedger(parts, options, { number, disk: { ...claim.disk, destroy }, store, close });
	} catch (error) {
		// Ignores a failure of `close`: the database ends this epoch when the instance's next one joins.
		heartbeat.close("joining again");
		if (claim.disk.list().length === 0) claim.disk.destroy();
		claim.release();
		throw error;
	}
	const built = ledger;
	const answers = createRecallAnswers({ store, answer: (budget, ticket) => built.answer(budget, ticket), clock, log });

	async function retire(drainMs: number, why?: string): Promise<boolean> {
		heartbeat.close(why);
		try {
			// Leaves only once its idle credit has arrived: recalls do not wait for a leaving epoch and could prove a wrong
			// 402.
			return await built.retire(drainMs, () => heartbeat.leave());
		} finally {
			heartbeat.stop();
			answers.stop();
			closing = false;
			claim.release();
		}
	}

	async function sendAllAgain(): Promise<number> {
		const server = await present().catch(() => undefined);
		const unknown = await built.sendAgain();
		completeOn = server;
		return unknown;
	}

	/** Sends recent settlements again after a failover, because the new server may lack acknowledged ones. */
	function tellAgain(): Promise<void> {
		telling = Promise.all([telling, sendAllAgain()]).then(([, unknown]) => {
			if (parts.counts) parts.counts.sentAgain += unknown;
			if (unknown > 0)
				log.error("sent settlements again that the database had acknowledged and lost", {
					instance: instanceId,
					epoch: number,
					settlements: unknown,
				});
		});
		return telling;
	}

	try {
		await heartbeat.goLive();
		if (events.isStopping()) throw new Error("stopped while joining");
	} catch (error) {
		void retire(ABANDONED_DRAIN_MS, "joining again");
		throw error;
	}
	log.info("this instance is live", { instance: instanceId, epoch: number });
	return {
		number,
		ledger: built,
		/** False if the journal's folder was deleted or replaced by another. */
		hasJournal: () => claim.isThere(),
		/** Reads the control log now. Call it when the log may have new entries. */
		sync: () => void heartbeat.sync(),
		/** Reads recalls now. Call it when other instances may have recalled idle credit. */
		hearRecalls: () => answers.hear(),
		/** Sends this epoch's settlements to another database server. Must run before the epoch's leases are closed. */
		tellAgain,
		/**
		 * Stops admission, settles running requests, answers recalls and returns all credit. `why` is the reason that the
		 * gate states until the next epoch. Returns true if the journal has nothing left to replay.
		 */
		retire,
	};
}

/**
 * Joins with an epoch number that no journal on this machine has. A database restored to an older state repeats
 * numbers; their old journals must be replayed, never appended to.
 */
async function joinUnused(
	parts: EpochDeps,
	options: EpochOptions,
	{ isStopping, ...events }: Pick<HeartbeatDeps, "apply" | "onEnded"> & { isStopping(): boolean },
) {
	const { heartbeats: store, clock, log, gate, journals } = parts;
	for (;;) {
		const heartbeat = await startHeartbeat({ store, clock, log, gate, ...events }, heartbeatOptions(options));
		const { began } = await parts.timesOf({ id: options.instanceId, epoch: heartbeat.epoch });
		const claim = journals.claim(options.instanceId, heartbeat.epoch, { create: true, began });
		if (claim?.disk.list().length === 0) return { heartbeat, claim };
		claim?.release();
		heartbeat.stop();
		log.warn("the database was restored to an older state: skipping an epoch whose journal exists", {
			instance: options.instanceId,
			epoch: heartbeat.epoch,
		});
		// Closes this epoch now, because without a journal no replay would close it.
		await closeEpoch({ store: parts.storeFor(options.instanceId, heartbeat.epoch), clock, log, isStopping });
	}
}

const heartbeatOptions = ({ instanceId, leaseTtlMs }: EpochOptions) => ({
	id: instanceId,
	ttlMs: leaseTtlMs,
	marginMs: Math.min(MARGIN_MS_MAX, leaseTtlMs / 5),
	heartbeatMs: Math.min(HEARTBEAT_MS, leaseTtlMs / 5),
});

function buildLedger(
	parts: EpochDeps,
	options: EpochOptions,
	epoch: { number: number; disk: JournalDisk; store: LedgerStore; close: () => Promise<void> },
): Ledger {
	const { clock, log } = parts;
	const { store } = epoch;
	const journal = createJournal(
		{ disk: epoch.disk, clock, log, onSyncFailed: parts.onDiskFailed, makeRoom: parts.kept.makeRoom },
		{ syncs: options.mode === "host", segmentBytesMax: options.segmentBytesMax, keepMs: options.keepMs },
	);
	const writer = createWriter(
		{ store, clock, log },
		{
			flushIntervalMs: options.flushIntervalMs ?? FLUSH_INTERVAL_MS,
			flushAt: FLUSH_AT,
			batchMax: FLUSH_BATCH_MAX,
			queueMax: FLUSH_QUEUE_MAX,
		},
	);
	const slices = createSlices(
		{ store, clock, log, newUuid: parts.newUuid },
		{ horizonMs: options.leaseTtlMs + 10_000, idleReturnMs: options.idleReturnMs },
	);
	return createLedger(
		{ slices, journal, writer, close: epoch.close, clock, log },
		{ epoch: epoch.number, mode: options.mode },
	);
}
