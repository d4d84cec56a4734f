import { join } from "node:path";
import { sleep, withDeadline } from "../base/clock.ts";
import { newUuid } from "../base/id.ts";
import { createStates } from "../base/states.ts";
import { CONTROL_CHANNEL } from "../cluster/control-log.ts";
import { FENCE_GRACE_MS } from "../cluster/fence.ts";
import { createGate } from "../cluster/gate.ts";
import { createPgHeartbeatStore, type EndOfEpoch, type HeartbeatStore } from "../cluster/heartbeat.ts";
import { openKeptEntries } from "../cluster/kept-entries.ts";
import { createPgFenceStore } from "../cluster/pg-fence-store.ts";
import { startWitness, type WitnessStore } from "../cluster/witness.ts";
import type { Database } from "../db/database.ts";
import { WrongServer } from "../db/outage.ts";
import { beginEpoch, type Epoch, type EpochDeps, type EpochOptions } from "./epoch.ts";
import { type JournalOwner, openJournalRoot } from "./journal-root.ts";
import { countedStore, createLedgerCounts } from "./ledger-counts.ts";
import { createJournalReplays } from "./left-journals.ts";
import { type OwnerState, openKeptJournals, waitForOwnerState, waitUntilSilent } from "./lost-journal.ts";
import { createPgLedgerStore } from "./pg-store.ts";

export type InstanceLease = Awaited<ReturnType<typeof holdInstanceLease>>;

export interface InstanceLeaseOptions
	extends Pick<EpochOptions, "instanceId" | "mode" | "leaseTtlMs" | "flushIntervalMs" | "keepMs"> {
	dataDir: string;
}

export interface InstanceLeaseDeps extends Pick<EpochDeps, "clock" | "log" | "apply" | "reset" | "onDiskFailed"> {
	db: Database;
}

export interface InstanceLeaseParts extends EpochDeps {
	witness: WitnessStore;
	/** Like `waitUntilSilent` of `lost-journal.ts`, for epochs of other processes. Rejects with `InstanceRunning`. */
	waitUntilSilent(
		instanceId: string,
		options: { isOwn: (epoch: number) => boolean; isStopping: () => boolean },
	): Promise<unknown>;
	/** Repeats changes, such as revocations, that a failover may have lost. Runs before the first admission. */
	redoLostActs(): Promise<void>;
	/** Calls `onMove` when the database server that answers has another history than before. */
	onMove(onMove: () => void): void;
	/** Calls `onChange` when the control log may have new entries, and after each reconnection. */
	listen(onChange: () => void): Promise<void>;
	listenRecalls(onRecall: () => void): Promise<void>;
}

/** Channel on which `lease_recall` announces recalls. */
const RECALL_CHANNEL = "tollgate_recall";
const REJOIN_MS = 500;
/** Milliseconds for which the ledger of a fenced epoch waits for its running requests. */
const FENCED_DRAIN_MS = 35 * 60_000;
/** Milliseconds before a failed replay is tried again. */
const RECOVER_AGAIN_MS = 5_000;
/** Milliseconds between searches for journals on this machine whose processes ended without settling everything. */
const LOOK_FOR_JOURNALS_MS = 10_000;
/** Longest interval at which instances check each other's heartbeats; usually it is a quarter of a lease. */
const WITNESS_MS_MAX = 5_000;

/** holding: the process keeps its lease. stopping: it drains. gone: the drain time is over. */
type LeaseState = "holding" | "stopping" | "gone";

const TRANSITIONS: Readonly<Record<LeaseState, readonly LeaseState[]>> = {
	holding: ["stopping"],
	stopping: ["gone"],
	gone: [],
};

/** Joins the cluster, replays journals of earlier epochs, and renews the instance's lease until it is stopped. */
export function startInstanceLease(deps: InstanceLeaseDeps, options: InstanceLeaseOptions): Promise<InstanceLease> {
	const { db, clock } = deps;
	const counts = createLedgerCounts();
	const fence = createPgFenceStore(db.liveness);
	const keptPath = join(options.dataDir, "control", `${options.instanceId}.jsonl`);
	const kept = openKeptEntries({ statements: db.statements, clock, log: deps.log }, keptPath);
	const parts: InstanceLeaseParts = {
		...deps,
		apply(entry) {
			kept.add(entry);
			deps.apply(entry);
		},
		redoLostActs: kept.reconcile,
		newUuid,
		counts,
		gate: createGate({ clock }),
		heartbeats: createPgHeartbeatStore(db.liveness, db.history),
		witness: fence,
		waitUntilSilent: (instanceId, of) =>
			waitUntilSilent({ statements: db.liveness, fence, clock }, instanceId, {
				graceMs: FENCE_GRACE_MS,
				settled: true,
				...of,
			}),
		storeFor: (instanceId, epoch) =>
			countedStore({ clock, counts }, createPgLedgerStore({ statements: db.ledger }, instanceId, epoch)),
		journals: openJournalRoot(join(options.dataDir, "journal")),
		kept: openKeptJournals({ clock }, join(options.dataDir, "journal-kept"), options.keepMs ?? 0),
		async timesOf({ id, epoch }) {
			const [row] = await db.liveness<{ began: string; ended: string | null }>`
				select control_at(started_at)::text as began, control_at(ended_at)::text as ended
				from instance_now where id = ${id} and epoch = ${epoch}`;
			return { began: row?.began, ended: row?.ended ?? undefined };
		},
		onMove: db.history.onMove,
		listen: (onChange) => db.listen(CONTROL_CHANNEL, onChange, onChange),
		listenRecalls: (onRecall) => db.listen(RECALL_CHANNEL, onRecall, onRecall),
	};
	return holdInstanceLease(parts, options);
}

/**
 * Keeps the process's right to admit requests: starts an epoch with its ledger, and a new one if the epoch is fenced.
 * `startInstanceLease` passes the product's parts, the simulation its own.
 */
export async function holdInstanceLease(given: InstanceLeaseParts, options: EpochOptions & { fencedDrainMs?: number }) {
	const joined: number[] = [];
	const counts = given.counts ?? createLedgerCounts();
	const parts = { ...given, counts, heartbeats: withNumbersOnce(given, joined) };
	const { clock, log, gate } = parts;
	const retiring = new Map<Epoch, Promise<boolean>>();
	let present: Epoch | undefined;
	let replacing: Promise<void> | undefined;
	let recovering: Promise<void> | undefined;
	const states = createStates(TRANSITIONS, "holding");
	const isStopping = () => !states.is("holding");
	/** Ends the pause before the next search for journals, if there is one. */
	let lookNow = () => {};

	const left = createJournalReplays({
		...parts,
		instanceId: options.instanceId,
		standingOf: standing,
		isStopping: () => states.is("gone"),
	});

	async function begin(): Promise<void> {
		await parts.redoLostActs();
		const onEnded = (why: EndOfEpoch) => {
			replaceSoon();
			if (why !== "another server") return;
			counts.epochsMoved += 1;
			for (const epoch of retiring.keys()) void epoch.tellAgain();
			left.doubtKept();
		};
		present = await beginEpoch(parts, options, { onEnded, isStopping });
		recoverSoon();
	}

	/** Replays journals in the background. A crashed epoch's credit becomes available while its journal is read. */
	function recoverSoon(): void {
		recovering ??= recoverAll().finally(() => (recovering = undefined));
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
					log.warn("journals of a crash remain: the next start on this DATA_DIR replays them", { failed: rest });
				return;
			}
			if (failed + left.waiting() === 0) return;
			// Not `Promise.race` with the promise of `stop`: each race would add a handler to that long-lived promise.
			await new Promise<void>((resolve) => {
				lookNow = resolve;
				clock.after(RECOVER_AGAIN_MS, resolve);
			});
		}
	}

	async function standing({ id, epoch }: JournalOwner): Promise<OwnerState> {
		const isOwn = (number: number) => id === options.instanceId && joined.includes(number);
		// A journal of one of this process's own epochs needs no wait for its owner's end.
		if (isOwn(epoch) && [present, ...retiring.keys()].some((one) => one?.number === epoch)) return "runs here";
		const silent = () => parts.waitUntilSilent(id, { isOwn, isStopping });
		return waitForOwnerState({ waitUntilSilent: silent, journals: parts.journals }, id);
	}

	/** Replaces the epoch if its journal's folder was removed, because after a crash nothing could be replayed. */
	function replaceIfRemoved(): void {
		if (present === undefined || replacing !== undefined) return;
		if (present.hasJournal()) return;
		log.error("the journal of this instance was removed: beginning a new epoch", {
			instance: options.instanceId,
			epoch: present.number,
		});
		replaceSoon("the journal was removed; joining again");
	}

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
			// Some settlements of this epoch did not reach Postgres, so they are replayed from its journal.
			if (!isStopping()) recoverSoon();
		});
	}

	function replaceSoon(why?: string): void {
		replacing = replace(why).finally(() => (replacing = undefined));
	}

	/** Starts a new epoch after a fence. The old epoch's ledger settles its running requests in the background. */
	async function replace(why?: string): Promise<void> {
		if (present) void retire(present, options.fencedDrainMs ?? FENCED_DRAIN_MS, why);
		present = undefined;
		while (!isStopping()) {
			try {
				return await begin();
			} catch (error) {
				log.warn("joining again failed; retrying", { error });
				if (error instanceof WrongServer) gate.close(error.message);
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
		// Waits for retiring epochs and the running replay, at most the drain time. An interrupted replay leaves the
		// crashed epoch's credit held until the next start.
		const leaving = [...retiring.values()];
		const everything = Promise.all([replacing, recovering]).then(() => Promise.all([...leaving, ...retiring.values()]));
		const late = () => new Error("not all was handed back in time");
		const outcomes = await withDeadline(clock, everything, drainMs, late).catch(() => {
			if (recovering) log.warn("the drain time ended during the replay of a journal: the next start continues it");
			return [false];
		});
		if (!states.is("gone")) states.enter("gone");
		// Requests that are aborted at the end of the drain time settle in the next turn of the event loop.
		if (outcomes.includes(false)) await sleep(clock, 0);
		return outcomes.every(Boolean);
	}

	await begin();
	let cancelLook = clock.after(LOOK_FOR_JOURNALS_MS, lookForJournals);
	const witness = startWitness(
		{ store: parts.witness, clock, log },
		{ intervalMs: Math.min(WITNESS_MS_MAX, options.leaseTtlMs / 4), graceMs: FENCE_GRACE_MS },
	);
	// `sync` compares the server's history label with the epoch's, so the epoch detects the move in this call.
	parts.onMove(() => present?.sync());
	await parts.listen(() => present?.sync());
	await parts.listenRecalls(() => {
		for (const epoch of retiring.keys()) epoch.hearRecalls();
		present?.hearRecalls();
	});

	return {
		/** Ledger from which requests reserve; undefined while this instance may not admit. Never waits. */
		ledger: () => (present && gate.isOpen() ? present.ledger : undefined),
		/** Ledger of the current epoch even if the gate is closed; for display. */
		present: () => present?.ledger,
		gate,
		/** Why this instance admits no requests at present; undefined if it does. */
		problem: () => gate.reason() ?? present?.ledger.problem(),
		/** The ledger's counters, summed over all epochs of this process. */
		counts,
		instanceId: options.instanceId,
		/** Resolves when no journal of an earlier epoch is being replayed. */
		recovered: async () => {
			while (recovering) await recovering;
		},
		/** Stops admission, waits for running requests and returns all credit. True if nothing is left to replay. */
		stop,
	};
}

/**
 * Avoids epoch numbers that a journal on this DATA_DIR already has. A restored database server, or one that lost its
 * last commits, may issue a number again; late messages of the earlier epoch would then count for the new one.
 */
const withNumbersOnce = ({ heartbeats, journals }: InstanceLeaseParts, joined: number[]): HeartbeatStore => ({
	...heartbeats,
	async join(id, ttlMs) {
		const number = await heartbeats.join(id, ttlMs, Math.max(joined.at(-1) ?? 0, journals.lastEpoch(id)));
		joined.push(number);
		return number;
	},
});
