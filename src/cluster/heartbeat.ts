import { assert } from "../base/assert.ts";
import type { Clock } from "../base/clock.ts";
import { type Log, silentLog } from "../base/log.ts";
import { createSingleFlight } from "../base/single-flight.ts";
import { createStates } from "../base/states.ts";
import { onlyRow, WrongServer } from "../db/outage.ts";
import { createServerHistory, type ServerHistory } from "../db/server-history.ts";
import type { Statements } from "../db/statements.ts";
import { type ControlEntry, readControlAfter } from "./control-log.ts";
import type { Gate } from "./gate.ts";

/** The newest entry's number in a server's control log; `server` is the label of the server's history. */
export interface LogPosition {
	readonly seq: number;
	readonly server: string;
}

/** Statements of one epoch. Each may be repeated; after a rejection its outcome is unknown. */
export interface HeartbeatStore {
	/** Starts the next epoch, with a number above `after`, in state joining. */
	join(id: string, ttlMs: number, after?: number): Promise<number>;
	position(): Promise<LogPosition>;
	/** joining → live if no entry is newer than `applied`. Returns the newest entry's number; null if fenced off. */
	goLive(id: string, epoch: number, applied: number, ttlMs: number): Promise<number | null>;
	/** Renews the lease. Returns the position of the control log; null if the epoch was fenced off. */
	heartbeat(id: string, epoch: number, applied: number, ttlMs: number): Promise<LogPosition | null>;
	readAfter(seq: number): Promise<readonly ControlEntry[]>;
	/** Records that this epoch admits no more requests, so that no revocation waits for it. Repeated until the end. */
	leave(id: string, epoch: number): Promise<void>;
}

interface HeartbeatOptions {
	id: string;
	ttlMs: number;
	/** Milliseconds by which the gate closes before the lease ends in the database, because clocks differ in speed. */
	marginMs: number;
	heartbeatMs: number;
}

export type Heartbeat = Awaited<ReturnType<typeof startHeartbeat>>;

/**
 * Why an epoch ended: another instance fenced it off; the database moved to a server that may lack commits; or entries
 * were deleted that this instance had not applied.
 */
export type EndOfEpoch = "fenced off" | "another server" | "entries removed";

export interface HeartbeatDeps {
	store: HeartbeatStore;
	clock: Clock;
	log: Log;
	gate: Gate;
	/**
	 * Applies an entry in memory, synchronously. When it returns, what the entry forbids is impossible on this instance,
	 * and the entry is reported as applied.
	 */
	apply(entry: ControlEntry): void;
	/** Called with the gate closed, so that the caller starts a new epoch. */
	onEnded(why: EndOfEpoch): void;
}

class EntriesRemoved extends Error {
	override readonly name = "EntriesRemoved" as const;
}

type HeartbeatState =
	| "joining"
	| "live"
	/** The gate is closed, but other instances still wait for this epoch's lease. */
	| "closed"
	/** Other instances know that this epoch admits no requests any more. */
	| "left";

const TRANSITIONS: Readonly<Record<HeartbeatState, readonly HeartbeatState[]>> = {
	joining: ["live", "closed"],
	live: ["closed"],
	closed: ["left"],
	left: [],
};

/** Milliseconds after a failed heartbeat; few, so that a brief outage does not close the gate. */
const REPEAT_MS = 200;
/** Attempts to become live. Each first applies the new entries of the log. */
const GO_LIVE_ATTEMPTS_MAX = 100;

/**
 * Runs one epoch of this instance: renews its lease, applies the control log, opens and closes the gate. The caller
 * opens the epoch's journal before it calls `goLive`.
 */
export async function startHeartbeat(deps: HeartbeatDeps, options: HeartbeatOptions) {
	const { store, clock, log, gate } = deps;
	const { id, ttlMs } = options;
	const epoch = await store.join(id, ttlMs);
	const joinedAt = await store.position();
	let applied = joinedAt.seq;
	const states = createStates(TRANSITIONS, "joining");
	const isStopped = () => states.is("closed") || states.is("left");
	const renewal = createSingleFlight(renew, (error) => {
		if (error instanceof EntriesRemoved && !isStopped()) return end("entries removed");
		log.warn("heartbeat failed", { instance: id, epoch, error });
		if (error instanceof WrongServer && !isStopped()) gate.close(error.message);
		repeatSoon();
	});
	let cancelTimer = () => {};
	let cancelRepeat = () => {};

	/**
	 * Applies the next entries; false if there were none. Entry numbers have no gaps: a missing entry was deleted, and
	 * may have revoked something that this instance still allows.
	 */
	async function follow(): Promise<boolean> {
		const entries = await store.readAfter(applied);
		for (const entry of entries) {
			assert(entry.seq > applied, "the control log is read in order");
			if (entry.seq !== applied + 1) throw new EntriesRemoved();
			deps.apply(entry);
			applied = entry.seq;
		}
		return entries.length > 0;
	}

	async function catchUp(): Promise<void> {
		while (await follow());
	}

	/**
	 * Applies announced entries, then sends a heartbeat, because revocations wait for the report. Then applies the
	 * entries that the reply shows to be missing, and extends the gate.
	 */
	async function renew(): Promise<void> {
		for (let round = 0; !isStopped(); round++) {
			await follow();
			const mark = gate.mark();
			const position = await store.heartbeat(id, epoch, applied, ttlMs);
			if (isStopped()) return;
			if (position === null) {
				gate.close("fenced off; joining again");
				// After a failover, the server may lack this epoch, or have fewer entries than this epoch applied.
				const isElsewhere = (await store.position()).server !== joinedAt.server;
				return isStopped() ? undefined : end(isElsewhere ? "another server" : "fenced off");
			}
			// The new server's log may contain other entries under the numbers that this epoch applied.
			if (position.server !== joinedAt.server) return end("another server");
			if (position.seq > applied) {
				if (round < GO_LIVE_ATTEMPTS_MAX) continue;
				await catchUp();
			}
			gate.extend(mark, ttlMs - options.marginMs);
			return;
		}
	}

	function end(why: EndOfEpoch): void {
		log.warn("this instance epoch has ended", { instance: id, epoch, why });
		stop();
		// Only a fenced epoch reports its end here. For other causes `leave` does, after idle credit was returned.
		if (why === "fenced off") {
			states.enter("left");
			tellAgain();
		}
		gate.close(`${why}; joining again`);
		deps.onEnded(why);
	}

	/** Ignores a failure: other instances then wait until the lease expires. */
	function tellOthers(): void {
		store.leave(id, epoch).catch((error) => log.debug("leaving was not recorded", { instance: id, epoch, error }));
	}

	function tellAgain(): void {
		cancelTimer = clock.after(options.heartbeatMs, () => {
			tellOthers();
			tellAgain();
		});
	}

	function leave(): void {
		if (states.is("left")) return;
		close();
		tellOthers();
		states.enter("left");
		tellAgain();
	}

	function sync(): Promise<void> {
		return states.is("live") ? renewal.run() : Promise.resolve();
	}

	function repeatSoon(): void {
		cancelRepeat();
		if (!isStopped()) cancelRepeat = clock.after(Math.min(REPEAT_MS, options.heartbeatMs), () => void sync());
	}

	function beat(): void {
		if (isStopped()) return;
		cancelTimer = clock.after(options.heartbeatMs, beat);
		void sync();
	}

	function stop(): void {
		states.enter("closed");
		cancelTimer();
		cancelRepeat();
	}

	function close(why = "stopping"): void {
		if (isStopped()) return;
		stop();
		gate.close(why);
	}

	return {
		id,
		epoch,
		/** Label of the server on which the epoch joined: its identity and timeline. */
		server: joinedAt.server,
		appliedSeq: () => applied,
		/** Applies the log and renews the lease now. Calls during a run share it. Never throws; failures are repeated. */
		sync,
		/** Stops the heartbeats and closes the gate. Other instances wait until `leave` or until the lease's end. */
		close,
		/**
		 * Closes the gate and reports, until `stop`, that this epoch admits no requests any more; running requests settle.
		 * While it reports, no other process replays a copy of the journal.
		 */
		leave,
		/** Like `leave`, but for an epoch without running requests. */
		stop() {
			leave();
			cancelTimer();
		},
		async goLive() {
			for (let attempt = 0; attempt < GO_LIVE_ATTEMPTS_MAX; attempt++) {
				await catchUp();
				const mark = gate.mark();
				const seq = await store.goLive(id, epoch, applied, ttlMs);
				if (seq === null) throw new Error(`instance ${id} epoch ${epoch} was fenced off before it was live`);
				if (seq !== applied) continue;
				if (!isStopped()) states.enter("live");
				gate.extend(mark, ttlMs - options.marginMs);
				cancelTimer = clock.after(options.heartbeatMs, beat);
				return;
			}
			throw new Error("the control log grows faster than it can be followed");
		},
	};
}

interface PlaceRow {
	readonly seq: string;
	readonly place: string;
}

/** Statements of the heartbeat. Their functions are in `db/functions/cluster.sql`. */
export function createPgHeartbeatStore(
	statements: Statements,
	history: ServerHistory = createServerHistory({ log: silentLog }),
): HeartbeatStore {
	let reportedSetbacks = 0;

	/** Runs a statement that returns `server_place()`. The returned label is the new one if the history has changed. */
	async function position(ask: () => Promise<readonly PlaceRow[]>): Promise<LogPosition | null> {
		const look = history.look();
		const [row] = await ask();
		if (row === undefined) return null;
		look(row.place);
		return { seq: Number(row.seq), server: history.label() };
	}

	return {
		async join(id, ttlMs, after = 0) {
			const setbacks = history.setbacks();
			if (setbacks > reportedSetbacks) await statements`select server_went_back()`;
			reportedSetbacks = setbacks;
			const rows = await statements<{ epoch: number }>`select instance_join(${id}, ${ttlMs}, ${after}) as epoch`;
			return Number(onlyRow(rows).epoch);
		},
		async position() {
			const found = await position(
				() => statements<PlaceRow>`select coalesce(max(seq), 0) as seq, server_place() as place from control_log`,
			);
			return onlyRow(found === null ? [] : [found]);
		},
		async goLive(id, epoch, applied, ttlMs) {
			const rows = await statements<{
				seq: string | null;
			}>`select instance_go_live(${id}, ${epoch}, ${applied}, ${ttlMs}) as seq`;
			const { seq } = onlyRow(rows);
			return seq === null ? null : Number(seq);
		},
		heartbeat: (id, epoch, applied, ttlMs) =>
			position(
				() =>
					statements<PlaceRow>`select seq, server as place from instance_renew(${id}, ${epoch}, ${applied}, ${ttlMs})`,
			),
		readAfter: (seq) => readControlAfter(statements, seq, history.look()),
		async leave(id, epoch) {
			await statements`
				select instance_stand(${id}, ${epoch}, null, array['joining', 'live', 'silent', 'dead'], 'dead', null, null)`;
		},
	};
}
