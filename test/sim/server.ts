import type { LaggingInstance } from "../../src/cluster/fence.ts";
import type { LogPosition } from "../../src/cluster/heartbeat.ts";
import type { Random } from "../support/random.ts";
import { instanceKey, type ModelInstance, type ModelState, type ModelStore } from "./model-store.ts";
import { GRACE_MS } from "./terms.ts";
import type { Timeline } from "./timeline.ts";
import type { DelicateMoment } from "./world.ts";

/** Work of a statement on the server. It calls `done` at its commit, or `fail` if it is refused. */
export type Statement<T> = (done: (result: T) => void, fail: (error: unknown) => void) => void;

export type SimServer = ReturnType<typeof createSimServer>;

type Closed = ReturnType<ModelStore["close"]>;

/** Faults of statements, which mutants switch on. */
export interface ServerFlaws {
	/** The search for lagging instances also fences those whose lease is over by the server's wall clock. */
	fenceByWallClock?: boolean;
	/** Going live does not lock the control log while it reads the log. */
	goLiveWithoutLock?: boolean;
	/** Fencing an epoch off also returns the credit of its leases. */
	reclaimsOnExpiry?: boolean;
}

interface Lock {
	holders: number;
	exclusive: boolean;
	readonly queue: { exclusive: boolean; run: () => void }[];
}

/**
 * The simulated database server: the model's statements, with the interleavings that locks allow. Most statements are
 * executed in one moment; those of revocations take time between their first lock and their commit.
 */
export function createSimServer(
	deps: {
		model: ModelStore;
		timeline: Timeline;
		random: Random;
		/** Wall clock of the server, which faults set forward. */
		wallMs: () => number;
		onCommit: () => void;
		onDelicate: (kind: DelicateMoment) => void;
	},
	options: { commitMsMax: (delicate: boolean) => number; flaws: ServerFlaws },
) {
	const { model, timeline, random, wallMs } = deps;
	const { flaws } = options;
	const locks = new Map<string, Lock>();
	let generation = 0;

	function acquire(name: string, exclusive: boolean, run: () => void): void {
		let lock = locks.get(name);
		if (!lock) {
			lock = { holders: 0, exclusive: false, queue: [] };
			locks.set(name, lock);
		}
		const free = lock.queue.length === 0 && (lock.holders === 0 || (!exclusive && !lock.exclusive));
		if (!free) {
			lock.queue.push({ exclusive, run });
			return;
		}
		lock.holders += 1;
		lock.exclusive = exclusive;
		run();
	}

	function release(name: string): void {
		const lock = locks.get(name);
		if (!lock) return;
		lock.holders -= 1;
		while (lock.queue.length > 0) {
			const [first] = lock.queue;
			if (!first || (lock.holders > 0 && (first.exclusive || lock.exclusive))) return;
			lock.queue.shift();
			lock.holders += 1;
			lock.exclusive = first.exclusive;
			first.run();
		}
	}

	/** Runs `then` when the transaction commits, unless the server crashes before. */
	function commitLater(
		label: string,
		fail: (error: unknown) => void,
		then: () => void,
		delicate?: DelicateMoment,
	): void {
		const startedIn = generation;
		if (delicate) deps.onDelicate(delicate);
		timeline.after(random.fraction() * options.commitMsMax(delicate !== undefined), `server: commit ${label}`, () => {
			if (startedIn !== generation) fail(new Error("the server went down"));
			else then();
		});
	}

	/** Values of a row that a transaction adds. Other transactions see the row after the commit. */
	interface Next {
		readonly state: ModelState;
		readonly beat: number;
		readonly ttlMs?: number;
		readonly leaseUntilMs?: number;
		readonly appliedSeq?: number;
	}

	/** Row that renews an epoch's lease, if the epoch is in one of these states. */
	const renewed =
		(states: readonly ModelState[], applied: number, ttlMs: number) =>
		({ state, beat, appliedSeq }: ModelInstance): Next | undefined =>
			states.includes(state)
				? {
						state: "live",
						beat: beat + 1,
						ttlMs,
						leaseUntilMs: wallMs() + ttlMs,
						appliedSeq: Math.max(appliedSeq, applied),
					}
				: undefined;

	/** Adds a heartbeat row of an epoch and holds the epoch's lock until the commit. */
	function stand(
		label: string,
		[id, epoch]: readonly [string, number],
		next: (instance: ModelInstance) => Next | undefined,
		end: { done: (added: boolean) => void; fail: (error: unknown) => void },
		delicate?: (instance: ModelInstance) => DelicateMoment | undefined,
	): void {
		const row = instanceKey(id, epoch);
		acquire(row, true, () => {
			const instance = model.instances.get(row);
			const change = instance && next(instance);
			if (!instance || !change) {
				release(row);
				end.done(false);
				return;
			}
			const commit = () => {
				Object.assign(instance, change);
				release(row);
				end.done(true);
				deps.onCommit();
			};
			commitLater(label, end.fail, commit, delicate?.(instance));
		});
	}

	/** Runs `work` in one moment, once the epoch's lock is free. */
	function standAtOnce(id: string, epoch: number, work: () => void, done: () => void): void {
		const row = instanceKey(id, epoch);
		acquire(row, true, () => {
			work();
			release(row);
			done();
			deps.onCommit();
		});
	}

	function fence(id: string, epoch: number, work: () => void, done: () => void): void {
		const wasDead = () => model.instances.get(instanceKey(id, epoch))?.state === "dead";
		const before = wasDead();
		standAtOnce(id, epoch, work, () => {
			if (flaws.reclaimsOnExpiry && !before && wasDead()) model.close(id, epoch, false, Number.POSITIVE_INFINITY);
			done();
		});
	}

	const appliedOf = (id: string, epoch: number) => model.instances.get(instanceKey(id, epoch))?.appliedSeq ?? 0;

	const server = {
		model,
		up: true,
		crash() {
			server.up = false;
			generation += 1;
			locks.clear();
		},
		atOnce:
			<T>(work: () => T): Statement<T> =>
			(done, fail) => {
				let result: T;
				try {
					result = work();
				} catch (error) {
					fail(error);
					return;
				}
				done(result);
				deps.onCommit();
			},
		/** Runs an append to the control log, whose lock it holds until the commit. */
		appending:
			<T>(work: () => T): Statement<T> =>
			(done, fail) =>
				acquire("log", true, () =>
					commitLater("append", fail, () => {
						try {
							done(work());
						} catch (error) {
							fail(error);
						}
						release("log");
						deps.onCommit();
					}),
				),
		heartbeat:
			(id: string, epoch: number, applied: number, ttlMs: number): Statement<LogPosition | null> =>
			(done, fail) => {
				if (applied > model.seq()) {
					standAtOnce(
						id,
						epoch,
						() => model.heartbeat(id, epoch, applied, ttlMs),
						() => done(null),
					);
					return;
				}
				const position = model.position();
				const isLate = (instance: ModelInstance) => instance.leaseUntilMs < wallMs() - GRACE_MS;
				stand(
					"heartbeat",
					[id, epoch],
					renewed(["live", "silent"], applied, ttlMs),
					{ done: (added) => done(added ? position : null), fail },
					(instance) => (isLate(instance) ? "renewal" : undefined),
				);
			},
		goLive:
			(id: string, epoch: number, applied: number, ttlMs: number): Statement<number | null> =>
			(done, fail) => {
				const enter = flaws.goLiveWithoutLock
					? (run: () => void) => run()
					: (run: () => void) => acquire("log", false, run);
				const leave = flaws.goLiveWithoutLock ? () => {} : () => release("log");
				enter(() => {
					const seq = model.seq();
					const finish = (result: number | null) => {
						leave();
						done(result);
					};
					if (seq !== applied) return finish(seq);
					stand(
						"go live",
						[id, epoch],
						renewed(["joining", "live", "silent"], applied, ttlMs),
						{ done: (added) => finish(added ? seq : null), fail },
						() => "go live",
					);
				});
			},
		/** Waits for a renewal that is being committed. The first call ends the epoch. */
		close:
			(id: string, epoch: number, journalLost: boolean, limit: number, keep?: readonly string[]): Statement<Closed> =>
			(done) => {
				let result: Closed = { closed: 0, done: false };
				const work = () => {
					result = model.close(id, epoch, journalLost, limit, keep);
				};
				standAtOnce(id, epoch, work, () => done(result));
			},
		leave:
			(id: string, epoch: number): Statement<void> =>
			(done) =>
				standAtOnce(id, epoch, () => model.leave(id, epoch), done),
		lagging:
			(seq: number): Statement<readonly LaggingInstance[]> =>
			(done) => {
				const over = [...model.instances.values()].filter(
					({ state, appliedSeq, leaseUntilMs }) =>
						appliedSeq < seq &&
						(state === "silent" || (flaws.fenceByWallClock && state === "live" && leaseUntilMs < wallMs() - GRACE_MS)),
				);
				const next = (at: number): void => {
					const instance = over[at];
					if (!instance) {
						done(model.live().filter(({ id, epoch }) => appliedOf(id, epoch) < seq));
						return;
					}
					const { id, epoch, state } = instance;
					const work = () => {
						if (instance.state === state) model.fenceOff(id, epoch, instance.beat);
					};
					fence(id, epoch, work, () => next(at + 1));
				};
				next(0);
			},
		fenceOff:
			(id: string, epoch: number, beat: number): Statement<void> =>
			(done) => {
				fence(id, epoch, () => model.fenceOff(id, epoch, beat), done);
			},
		silent:
			(id: string, epoch: number, beat: number): Statement<void> =>
			(done) =>
				standAtOnce(id, epoch, () => model.silent(id, epoch, beat), done),
	};

	return server;
}
