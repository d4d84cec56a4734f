import type { Random } from "../support/random.ts";
import type { ModelStore } from "./model-store.ts";
import { instanceKey } from "./model-store.ts";
import { GRACE_MS } from "./terms.ts";
import type { Timeline } from "./timeline.ts";
import type { Delicate } from "./world.ts";

/** A statement's work on the server: calls `done` when it is committed, `fail` if it is refused. */
export type Statement<T> = (done: (result: T) => void, fail: (error: unknown) => void) => void;

/**
 * The database server of the simulation: the model's statements, with those interleavings that row locks allow. Most
 * statements are carried out at one moment; what the protocol of revocation rests on takes time between its first lock
 * and its commit.
 */
export interface SimServer {
	readonly model: ModelStore;
	up: boolean;
	/** Statements under way are aborted. */
	crash(): void;
	/** One moment. */
	atOnce<T>(work: () => T): Statement<T>;
	/** Holds the control clock until it commits, as everything that appends to the control log does. */
	appending<T>(work: () => T): Statement<T>;
	heartbeat(id: string, epoch: number, applied: number, ttlMs: number): Statement<number | null>;
	goLive(id: string, epoch: number, applied: number, ttlMs: number): Statement<number | null>;
	pending(seq: number, graceMs: number): Statement<{ id: string; epoch: number; leaseUntilMs: number }[]>;
}

/** Variants of the statements, for mutants. */
export interface ServerFlaws {
	/** `pending` reads who is fenced off instead of locking the rows and writing it down. */
	pendingReadsOnly?: boolean;
	/** Going live does not hold the control clock while it checks it. */
	goLiveWithoutLock?: boolean;
	/** `pending` also gives back the leases of those that it fences off. */
	reclaimsOnExpiry?: boolean;
}

interface Lock {
	holders: number;
	exclusive: boolean;
	readonly queue: { exclusive: boolean; run: () => void }[];
}

export function createSimServer(
	deps: {
		model: ModelStore;
		timeline: Timeline;
		random: Random;
		onCommit: () => void;
		onDelicate: (kind: Delicate) => void;
	},
	options: { commitMsMax: (delicate: boolean) => number; flaws: ServerFlaws },
): SimServer {
	const { model, timeline, random } = deps;
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

	/** Runs `then` when the transaction would commit, unless the server went down meanwhile. */
	function commitLater(label: string, fail: (error: unknown) => void, then: () => void, delicate?: Delicate): void {
		const startedIn = generation;
		if (delicate) deps.onDelicate(delicate);
		timeline.after(random.fraction() * options.commitMsMax(delicate !== undefined), `server: commit ${label}`, () => {
			if (startedIn !== generation) fail(new Error("the server went down"));
			else then();
		});
	}

	const server: SimServer = {
		model,
		up: true,
		crash() {
			server.up = false;
			generation += 1;
			locks.clear();
		},
		atOnce: (work) => (done, fail) => {
			let result: ReturnType<typeof work>;
			try {
				result = work();
			} catch (error) {
				fail(error);
				return;
			}
			done(result);
			deps.onCommit();
		},
		appending: (work) => (done, fail) =>
			acquire("clock", true, () =>
				commitLater("append", fail, () => {
					try {
						done(work());
					} catch (error) {
						fail(error);
					}
					release("clock");
					deps.onCommit();
				}),
			),
		heartbeat: (id, epoch, applied, ttlMs) => (done, fail) => {
			const row = instanceKey(id, epoch);
			acquire(row, true, () => {
				const instance = model.instances.get(row);
				if (instance?.state !== "live") {
					release(row);
					done(null);
					return;
				}
				const leaseUntilMs = timeline.nowMs() + ttlMs;
				const seq = model.seq();
				const commit = () => {
					instance.leaseUntilMs = leaseUntilMs;
					instance.appliedSeq = Math.max(instance.appliedSeq, applied);
					release(row);
					done(seq);
				};
				commitLater(
					"heartbeat",
					fail,
					commit,
					instance.leaseUntilMs < timeline.nowMs() - GRACE_MS ? "renewal" : undefined,
				);
			});
		},
		goLive: (id, epoch, applied, ttlMs) => (done, fail) => {
			const row = instanceKey(id, epoch);
			const enter = flaws.goLiveWithoutLock
				? (run: () => void) => run()
				: (run: () => void) => acquire("clock", false, run);
			const leave = flaws.goLiveWithoutLock ? () => {} : () => release("clock");
			enter(() => {
				const seq = model.seq();
				const finish = (result: number | null) => {
					leave();
					done(result);
				};
				if (seq !== applied) return finish(seq);
				acquire(row, true, () => {
					const instance = model.instances.get(row);
					if (!instance || (instance.state !== "joining" && instance.state !== "live")) {
						release(row);
						return finish(null);
					}
					const leaseUntilMs = timeline.nowMs() + ttlMs;
					const commit = () => {
						Object.assign(instance, { state: "live", appliedSeq: applied, leaseUntilMs });
						release(row);
						finish(seq);
					};
					commitLater("go live", fail, commit, "go live");
				});
			});
		},
		pending: (seq, graceMs) => (done) => {
			const lagging = () => [...model.instances.values()].filter((i) => i.state === "live" && i.appliedSeq < seq);
			const isOver = (i: { leaseUntilMs: number }) => i.leaseUntilMs < timeline.nowMs() - graceMs;
			if (flaws.pendingReadsOnly) {
				done(lagging().filter((instance) => !isOver(instance)));
				return;
			}
			const expired = lagging().filter(isOver);
			const next = (at: number): void => {
				const instance = expired[at];
				if (!instance) {
					done(lagging().map(({ id, epoch, leaseUntilMs }) => ({ id, epoch, leaseUntilMs })));
					return;
				}
				const row = instanceKey(instance.id, instance.epoch);
				acquire(row, true, () => {
					if (instance.state === "live" && instance.appliedSeq < seq && isOver(instance)) {
						instance.state = "dead";
						if (flaws.reclaimsOnExpiry) model.close(instance.id, instance.epoch, false);
					}
					release(row);
					next(at + 1);
				});
			};
			next(0);
		},
	};
	return server;
}
