import { join } from "node:path";
import type { Clock } from "../base/clock.ts";
import { sleep, withDeadline } from "../base/clock.ts";
import { newUuid } from "../base/id.ts";
import type { Log } from "../base/log.ts";
import { createStates } from "../base/states.ts";
import type { ControlEntry } from "../cluster/control-log.ts";
import { CONTROL_CHANNEL } from "../cluster/control-log.ts";
import { FENCE_GRACE_MS } from "../cluster/fence.ts";
import type { Gate } from "../cluster/gate.ts";
import { createGate } from "../cluster/gate.ts";
import type { EndOfEpoch, HeartbeatStore } from "../cluster/heartbeat.ts";
import { createPgFenceStore } from "../cluster/pg-fence-store.ts";
import { createPgHeartbeatStore } from "../cluster/pg-heartbeat-store.ts";
import type { WitnessStore } from "../cluster/witness.ts";
import { startWitness } from "../cluster/witness.ts";
import type { Database } from "../db/database.ts";
import type { Epoch, EpochOptions, EpochParts } from "./epoch.ts";
import { beginEpoch } from "./epoch.ts";
import type { JournalClaim } from "./journal-home.ts";
import { openJournalHome } from "./journal-home.ts";
import type { JournalMode } from "./journal-mode.ts";
import type { Ledger } from "./ledger.ts";
import type { LedgerCounts } from "./ledger-counts.ts";
import { countedStore, createLedgerCounts } from "./ledger-counts.ts";
import { createLeftJournals } from "./left-journals.ts";
import { untilSilent } from "./lost-journal.ts";
import type { OwnerStanding } from "./owner-standing.ts";
import { standingOf } from "./owner-standing.ts";
import type { JournalNote } from "./persisted-liveness.ts";
import { createPgLedgerStore } from "./pg-store.ts";
import { createRefusedJournals } from "./refused-journals.ts";

/** This process's right to admit requests: its present epoch, with the ledger that goes with it. */
export interface InstanceLease {
	/** The ledger to reserve from, undefined while this instance may not admit. Synchronous. */
	ledger(): Ledger | undefined;
	/** The present epoch's ledger whether or not the gate is open; for views. */
	present(): Ledger | undefined;
	gate: Gate;
	/** Why this instance admits nobody now; undefined if it may. */
	problem(): string | undefined;
	/** Over all epochs. */
	counts: LedgerCounts;
	instanceId: string;
	/** Resolves when no journal of an epoch before is being replayed. */
	recovered(): Promise<void>;
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

/** What an instance lease is made of. */
export interface InstanceLeaseParts extends EpochParts {
	witness: WitnessStore;
	/** As `untilSilent` of `lost-journal.ts`, of all epochs but this process's own; rejects with `InstanceRuns` if one runs. */
	untilSilent(
		instanceId: string,
		options: { isOwn: (epoch: number) => boolean; isStopping: () => boolean; note: JournalNote },
	): Promise<unknown>;
	counts?: LedgerCounts;
	/** Calls `onChange` whenever the control log may have grown, also after a gap in which it could not hear. */
	listen(onChange: () => void): Promise<void>;
	/** As `listen`, for recalls. */
	listenRecalls(onRecall: () => void): Promise<void>;
}

export interface HoldOptions extends EpochOptions {
	fencedDrainMs?: number;
}

/** The channel that `lease_recall` announces recalls on. */
const RECALL_CHANNEL = "tollgate_recall";
const REJOIN_MS = 500;
/** How long the ledger of an epoch that was fenced off waits for its running requests. */
const FENCED_DRAIN_MS = 35 * 60_000;
/** How often a journal is tried again that could not be handed in. */
const RECOVER_AGAIN_MS = 5_000;
/** How often it looks for journals of processes that ended beside this one and could not hand theirs in. */
const LOOK_FOR_JOURNALS_MS = 10_000;
/** Four times a lease, and often enough when leases are long. */
const WITNESS_MS_MAX = 5_000;

/** "gone": the drain time is over. */
type LeaseState = "holding" | "stopping" | "gone";

const TRANSITIONS: Readonly<Record<LeaseState, readonly LeaseState[]>> = {
	holding: ["stopping"],
	stopping: ["gone"],
	gone: [],
};

/** Joins, replays what earlier epochs left, and keeps the lease until it is stopped. */
export function startInstanceLease(deps: InstanceLeaseDeps, options: InstanceLeaseOptions): Promise<InstanceLease> {
	const { db, clock } = deps;
	const counts = createLedgerCounts();
	const fence = createPgFenceStore(db.liveness);
	const parts: InstanceLeaseParts = {
		...deps,
		newUuid,
		counts,
		gate: createGate({ clock }),
		heartbeats: createPgHeartbeatStore(db.liveness),
		witness: fence,
		untilSilent: (instanceId, of) =>
			untilSilent({ statements: db.liveness, fence, clock }, instanceId, {
				graceMs: FENCE_GRACE_MS,
				settled: true,
				...of,
			}),
		storeFor: (instanceId, epoch) =>
			countedStore({ clock, counts }, createPgLedgerStore({ statements: db.ledger }, instanceId, epoch)),
		journals: openJournalHome(join(options.dataDir, "journal")),
		async beganOf({ id, epoch }) {
			const [row] = await db.liveness<{ began: string }>`
				select control_at(started_at)::text as began from instance_now where id = ${id} and epoch = ${epoch}`;
			return row?.began;
		},
		listen: (onChange) => db.listen(CONTROL_CHANNEL, onChange, onChange),
		listenRecalls: (onRecall) => db.listen(RECALL_CHANNEL, onRecall, onRecall),
	};
	return holdInstanceLease(parts, options);
}

/** As `startInstanceLease`, from parts. */
export async function holdInstanceLease(given: InstanceLeaseParts, options: HoldOptions): Promise<InstanceLease> {
	/** Numbers of all epochs of this process. */
	const joined: number[] = [];
	const parts = { ...given, heartbeats: withNumbersOnce(given.heartbeats, joined) };
	const { clock, log, gate } = parts;
	const retiring = new Map<Epoch, Promise<boolean>>();
	let present: Epoch | undefined;
	let replacing: Promise<void> | undefined;
	let recovering: Promise<void> | undefined;
	const states = createStates(TRANSITIONS, "holding");
	const isStopping = () => !states.is("holding");
	/** Ends the wait for the next look at the journals, if there is one. */
	let lookNow = () => {};

	const left = createLeftJournals({
		...parts,
		refusedJournals: createRefusedJournals({ clock }),
		instanceId: options.instanceId,
		standingOf: standing,
		isStopping: () => states.is("gone"),
	});

	async function begin(): Promise<void> {
		const onEnded = (why: EndOfEpoch) => {
			replaceSoon();
			if (why === "another server") tellAgain();
		};
		present = await beginEpoch(parts, options, { onEnded, isStopping });
		recoverSoon();
	}

	/** Those that were fenced off before had settled something too. */
	function tellAgain(): void {
		for (const epoch of retiring.keys()) void epoch.tellAgain();
	}

	/** Beside the traffic: what the last epoch held comes back as its journal is read. */
	function recoverSoon(): void {
		recovering ??= recoverAll().finally(() => {
			recovering = undefined;
		});
	}

	async function recoverAll(): Promise<void> {
		for (;;) {
			const failed = await left.look().catch((error: unknown) => {
				log.warn("the journals could not be listed", { error });
				return 1;
			});
			if (isStopping()) {
				const rest = failed + (await left.ended());
				if (rest > 0)
					log.warn("journals of a crash are left: the next start on this DATA_DIR hands them in", { failed: rest });
				return;
			}
			if (failed + left.waiting() === 0) return;
			// No race with a promise of the stop: that would keep something of each wait, for as long as a journal stays.
			await new Promise<void>((resolve) => {
				lookNow = resolve;
				clock.after(RECOVER_AGAIN_MS, resolve);
			});
		}
	}

	async function standing({ owner: { id, epoch }, note }: JournalClaim): Promise<OwnerStanding> {
		const isOwn = (number: number) => id === options.instanceId && joined.includes(number);
		// Of one that ended here and could not hand in all there is nobody else.
		if (isOwn(epoch) && [present, ...retiring.keys()].some((one) => one?.number === epoch)) return "runs here";
		const silent = () => parts.untilSilent(id, { isOwn, isStopping, note });
		return standingOf({ untilSilent: silent, journals: parts.journals }, id);
	}

	/** What a crash would be replayed from is gone: all that is known here goes to Postgres, and a new epoch writes a new one. */
	function replaceIfRemoved(): void {
		if (present === undefined || replacing !== undefined) return;
		if (present.hasJournal()) return;
		log.error("this instance's journal was removed under it: it begins a new epoch", {
			instance: options.instanceId,
			epoch: present.number,
		});
		replaceSoon("the journal was removed; joining again");
	}

	/** Whoever ends beside this process, and has no next start, leaves its journal to those that live. */
	function lookForJournals(): void {
		replaceIfRemoved();
		recoverSoon();
		cancelLook = clock.after(LOOK_FOR_JOURNALS_MS, lookForJournals);
	}

	function retire(epoch: Epoch, drainMs: number, why?: string): Promise<boolean> {
		const retired = epoch.retire(drainMs, why);
		retiring.set(epoch, retired);
		return retired.finally(() => {
			retiring.delete(epoch);
			// What it could not hand in stands in its journal.
			if (!isStopping()) recoverSoon();
		});
	}

	function replaceSoon(why?: string): void {
		replacing = replace(why).finally(() => {
			replacing = undefined;
		});
	}

	/** After being fenced off: the old ledger settles what still runs, a new epoch takes over. */
	async function replace(why?: string): Promise<void> {
		if (present) void retire(present, options.fencedDrainMs ?? FENCED_DRAIN_MS, why);
		present = undefined;
		while (!isStopping()) {
			try {
				return await begin();
			} catch (error) {
				log.warn("joining again failed; trying again", { error });
				await sleep(clock, REJOIN_MS);
			}
		}
	}

	async function stop(drainMs: number): Promise<boolean> {
		if (!isStopping()) states.enter("stopping");
		lookNow();
		cancelLook();
		witness.stop();
		gate.close("stopping", true);
		if (present) void retire(present, drainMs);
		present = undefined;
		// An epoch that is just joining gives itself up, one that was fenced off may take longer than we wait. A journal that
		// is being replayed has the drain time too, or what its crash left would stay held until the next start.
		// Those that retire now besides: by then some are through, and may have left something.
		const leaving = [...retiring.values()];
		const everything = Promise.all([replacing, recovering]).then(() => Promise.all([...leaving, ...retiring.values()]));
		const late = () => new Error("not all was handed back in time");
		const outcomes = await withDeadline(clock, everything, drainMs, late).catch(() => {
			if (recovering) log.warn("the drain time is over while a journal is replayed: the next start goes on with it");
			return [false];
		});
		if (!states.is("gone")) states.enter("gone");
		// What ended with the drain time settles in the turn behind it.
		if (outcomes.includes(false)) await sleep(clock, 0);
		return outcomes.every(Boolean);
	}

	await begin();
	let cancelLook = clock.after(LOOK_FOR_JOURNALS_MS, lookForJournals);
	const witness = startWitness(
		{ store: parts.witness, clock, log },
		{ intervalMs: Math.min(WITNESS_MS_MAX, options.leaseTtlMs / 4), graceMs: FENCE_GRACE_MS },
	);
	await parts.listen(() => present?.sync());
	await parts.listenRecalls(() => {
		for (const epoch of retiring.keys()) epoch.hearRecalls();
		present?.hearRecalls();
	});

	return {
		ledger: () => (present && gate.isOpen() ? present.ledger : undefined),
		present: () => present?.ledger,
		gate,
		problem: () => gate.reason() ?? present?.ledger.problem(),
		counts: parts.counts ?? createLedgerCounts(),
		instanceId: options.instanceId,
		recovered: async () => {
			while (recovering) await recovering;
		},
		stop,
	};
}

/**
 * A server that took over before it had all may give a number again that this process had: what an epoch sent before, and
 * lay about on its way until now, would be taken for the new one's. So each is behind all others of this process.
 */
function withNumbersOnce(store: HeartbeatStore, joined: number[]): HeartbeatStore {
	return {
		...store,
		async join(id, ttlMs) {
			const number = await store.join(id, ttlMs, joined.at(-1) ?? 0);
			joined.push(number);
			return number;
		},
	};
}
