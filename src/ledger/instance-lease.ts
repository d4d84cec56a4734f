import { join } from "node:path";
import { assert } from "../base/assert.ts";
import type { Clock } from "../base/clock.ts";
import { sleep, withDeadline } from "../base/clock.ts";
import { newUuid } from "../base/id.ts";
import type { Log } from "../base/log.ts";
import type { ControlEntry } from "../cluster/control-log.ts";
import { CONTROL_CHANNEL } from "../cluster/control-log.ts";
import type { Gate } from "../cluster/gate.ts";
import { createGate } from "../cluster/gate.ts";
import type { Heartbeat, HeartbeatStore } from "../cluster/heartbeat.ts";
import { startHeartbeat } from "../cluster/heartbeat.ts";
import { createPgHeartbeatStore } from "../cluster/pg-heartbeat-store.ts";
import type { Database } from "../db/database.ts";
import { createJournal } from "./journal.ts";
import type { JournalDisk } from "./journal-disk.ts";
import type { JournalHome } from "./journal-home.ts";
import { openJournalHome } from "./journal-home.ts";
import type { JournalMode } from "./journal-mode.ts";
import type { Ledger } from "./ledger.ts";
import { createLedger } from "./ledger.ts";
import { createPgLedgerStore } from "./pg-store.ts";
import { recoverJournals } from "./recovery.ts";
import { createSlices } from "./slices.ts";
import type { LedgerStore } from "./store.ts";
import { createWriter } from "./writer.ts";

/** This process's right to admit requests: its present epoch, with the ledger that goes with it. */
export interface InstanceLease {
	/** The ledger to reserve from, undefined while this instance may not admit. Synchronous. */
	ledger(): Ledger | undefined;
	/** The present epoch's ledger whether or not the gate is open; for views. */
	present(): Ledger | undefined;
	gate: Gate;
	instanceId: string;
	/** Stops admitting, waits for running requests, hands everything back. True if nothing is left to replay. */
	stop(drainMs: number): Promise<boolean>;
}

export interface InstanceLeaseOptions {
	instanceId: string;
	dataDir: string;
	mode: JournalMode;
	leaseTtlMs: number;
	/** For tests that do not want to wait. */
	flushIntervalMs?: number;
}

export interface InstanceLeaseDeps {
	db: Database;
	clock: Clock;
	log: Log;
	/** Keys and accounts: applied before the ledger's own part. */
	apply(entry: ControlEntry): void;
	/** A new epoch begins at this sequence number: what was cached before may be stale. */
	reset(seq: number): void;
	/** The journal's disk failed: what it acknowledged may be lost with the next power cut. The process must end. */
	onDiskFailed(error: unknown): void;
}

/** What an instance lease is made of, so that the simulation can run it without a database, a disk or real time. */
export interface InstanceLeaseParts extends Omit<InstanceLeaseDeps, "db"> {
	newUuid(): string;
	gate: Gate;
	heartbeats: HeartbeatStore;
	storeFor(instanceId: string, epoch: number): LedgerStore;
	journals: JournalHome;
	/** Calls `onChange` whenever the control log may have grown, also after a gap in which it could not hear. */
	listen(onChange: () => void): Promise<void>;
}

export interface HoldOptions extends Omit<InstanceLeaseOptions, "dataDir"> {
	segmentBytesMax?: number;
	idleReturnMs?: number;
	fencedDrainMs?: number;
}

const HEARTBEAT_MS = 1_000;
const MARGIN_MS_MAX = 2_000;
const FLUSH_INTERVAL_MS = 100;
const FLUSH_BATCH_MAX = 1_000;
const FLUSH_QUEUE_MAX = 200_000;
const IDLE_RETURN_MS = 60_000;
const DRAW_DEADLINE_MS = 5_000;
const TICK_MS = 1_000;
const REJOIN_MS = 500;
/** How long the ledger of an epoch that was fenced off waits for its running requests. */
const FENCED_DRAIN_MS = 35 * 60_000;
/** How long an epoch that never went live may take to say so. */
const ABANDONED_DRAIN_MS = 5_000;

/** Replays what earlier epochs left, joins, and keeps the lease until it is stopped. */
export function startInstanceLease(deps: InstanceLeaseDeps, options: InstanceLeaseOptions): Promise<InstanceLease> {
	const { db, clock } = deps;
	const parts: InstanceLeaseParts = {
		...deps,
		newUuid,
		gate: createGate({ clock }),
		heartbeats: createPgHeartbeatStore(db.statements),
		storeFor: (instanceId, epoch) => createPgLedgerStore({ statements: db.statements, clock }, instanceId, epoch),
		journals: openJournalHome(join(options.dataDir, "journal")),
		listen: (onChange) => db.listen(CONTROL_CHANNEL, onChange, onChange),
	};
	return holdInstanceLease(parts, options);
}

interface Present {
	readonly ledger: Ledger;
	readonly heartbeat: Heartbeat;
	release(): void;
}

/** As `startInstanceLease`, from parts. */
export async function holdInstanceLease(parts: InstanceLeaseParts, options: HoldOptions): Promise<InstanceLease> {
	const { clock, log, gate, journals } = parts;
	const { instanceId } = options;
	const retiring = new Set<Promise<boolean>>();
	let present: Present | undefined;
	let replacing: Promise<void> | undefined;
	let stopping = false;

	async function begin(): Promise<void> {
		await recoverJournals(parts);
		let ledger: Ledger | undefined;
		const heartbeat = await startHeartbeat(
			{
				store: parts.heartbeats,
				clock,
				log,
				gate,
				apply: (entry) => applyEntry(entry, ledger, heartbeat.epoch),
				onFenced: () => {
					replacing = replace().finally(() => {
						replacing = undefined;
					});
				},
			},
			memberOptions(options),
		);
		parts.reset(heartbeat.appliedSeq());
		const claim = journals.claim(instanceId, heartbeat.epoch, { create: true });
		assert(claim !== undefined, "a new epoch's journal is nobody else's");
		try {
			ledger = buildLedger(parts, options, heartbeat.epoch, claim.disk);
			await heartbeat.goLive();
			if (stopping) throw new Error("stopped while joining");
		} catch (error) {
			heartbeat.stop();
			if (ledger) void retire({ ledger, heartbeat, release: claim.release }, ABANDONED_DRAIN_MS);
			else claim.release();
			throw error;
		}
		present = { ledger, heartbeat, release: claim.release };
		log.info("this instance is live", { instance: instanceId, epoch: heartbeat.epoch });
	}

	async function applyEntry(entry: ControlEntry, ledger: Ledger | undefined, epoch: number): Promise<void> {
		parts.apply(entry);
		if (!ledger) return;
		if (entry.kind === "recall") {
			const own = entry.payload.instance === instanceId && entry.payload.epoch === epoch;
			if (!own) await ledger.surrender(entry.subject);
		} else if (entry.kind === "budget") {
			ledger.limitChanged(entry.subject);
			if (entry.payload.lowered === true) await ledger.surrender(entry.subject);
		}
	}

	function retire({ ledger, heartbeat, release }: Present, drainMs: number): Promise<boolean> {
		heartbeat.stop();
		const retired = ledger.retire(drainMs).finally(release);
		retiring.add(retired);
		return retired.finally(() => retiring.delete(retired));
	}

	/** After being fenced off: the old ledger settles what still runs, a new epoch takes over. */
	async function replace(): Promise<void> {
		if (present) void retire(present, options.fencedDrainMs ?? FENCED_DRAIN_MS);
		present = undefined;
		while (!stopping) {
			try {
				return await begin();
			} catch (error) {
				log.warn("joining again failed; trying again", { error });
				await sleep(clock, REJOIN_MS);
			}
		}
	}

	async function stop(drainMs: number): Promise<boolean> {
		stopping = true;
		gate.close("stopping", true);
		if (present) void retire(present, drainMs);
		present = undefined;
		// An epoch that is just joining gives itself up, one that was fenced off may take longer than we wait.
		const everything = Promise.resolve(replacing).then(() => Promise.all(retiring));
		const late = () => new Error("not all was handed back in time");
		const outcomes = await withDeadline(clock, everything, drainMs, late).catch(() => [false]);
		return outcomes.every(Boolean);
	}

	await begin();
	await parts.listen(() => void present?.heartbeat.sync());

	return {
		ledger: () => (present && gate.isOpen() ? present.ledger : undefined),
		present: () => present?.ledger,
		gate,
		instanceId,
		stop,
	};
}

function memberOptions({ instanceId, leaseTtlMs }: HoldOptions) {
	return {
		id: instanceId,
		ttlMs: leaseTtlMs,
		marginMs: Math.min(MARGIN_MS_MAX, leaseTtlMs / 5),
		heartbeatMs: Math.min(HEARTBEAT_MS, leaseTtlMs / 5),
	};
}

function buildLedger(parts: InstanceLeaseParts, options: HoldOptions, epoch: number, disk: JournalDisk): Ledger {
	const { clock, log } = parts;
	const store = parts.storeFor(options.instanceId, epoch);
	const journal = createJournal(
		{ disk, clock, log, onSyncFailed: parts.onDiskFailed },
		{ syncs: options.mode === "host", segmentBytesMax: options.segmentBytesMax },
	);
	const writer = createWriter(
		{ store, clock, log },
		{
			flushIntervalMs: options.flushIntervalMs ?? FLUSH_INTERVAL_MS,
			batchMax: FLUSH_BATCH_MAX,
			queueMax: FLUSH_QUEUE_MAX,
		},
	);
	const slices = createSlices(
		{ store, clock, log, newUuid: parts.newUuid },
		{
			horizonMs: options.leaseTtlMs + 10_000,
			idleReturnMs: options.idleReturnMs ?? IDLE_RETURN_MS,
			drawDeadlineMs: DRAW_DEADLINE_MS,
			tickMs: TICK_MS,
		},
	);
	return createLedger(
		{ slices, journal, writer, close: () => store.close(), clock, log },
		{ epoch, mode: options.mode },
	);
}
