import { CounterMap } from "./counter-map.ts";
import { createFairLines } from "./fair-lines.ts";

/** Milliseconds of work per turn of the event loop; the step that exceeds them is completed. */
const TURN_MS = 2;
/** Time for which an owner's used processor time counts against it. */
const WINDOW_MS = 1_000;

interface Waiter {
	readonly owner: string;
	/** Returns the time it took, or undefined if its work follows in a microtask. */
	go(): number | undefined;
}

/**
 * Divides the event loop among owners with much work. Work runs at once while the turn has time left; otherwise it
 * waits, and the owner with the least processor time in the present second is next.
 */
export function createProcessorTurns() {
	let spentUs = new CounterMap();
	const lines = createFairLines<Waiter>(
		({ owner }) => owner,
		(owner) => spentUs.of(owner),
	);
	let usedMs = 0;
	let windowEndsMs = 0;
	let isScheduled = false;

	const isFree = () => usedMs < TURN_MS && lines.size() === 0;

	function schedule(): void {
		if (isScheduled) return;
		isScheduled = true;
		setImmediate(turn);
	}

	function spend(owner: string, ms: number): void {
		usedMs += ms;
		spentUs.add(owner, Math.ceil(ms * 1_000));
		lines.goBehind(owner);
		if (usedMs >= TURN_MS) schedule();
	}

	function turn(): void {
		isScheduled = false;
		usedMs = 0;
		const nowMs = performance.now();
		if (nowMs >= windowEndsMs) {
			windowEndsMs = nowMs + WINDOW_MS;
			spentUs = new CounterMap();
		}
		for (let next = lines.first(); next !== undefined; next = lines.first()) {
			const took = next.go();
			if (took !== undefined) spend(next.owner, took);
			if (took === undefined || usedMs >= TURN_MS) break;
		}
		if (lines.size() > 0) schedule();
	}

	return {
		/** Runs a short step of work, now or later. */
		run<Result>(owner: string, work: () => Result): Result | Promise<Result> {
			if (isFree()) {
				const beganMs = performance.now();
				try {
					return work();
				} finally {
					spend(owner, performance.now() - beganMs);
				}
			}
			return new Promise((resolve, reject) => {
				const node = lines.add({
					owner,
					go() {
						lines.delete(node);
						const beganMs = performance.now();
						try {
							resolve(work());
						} catch (error) {
							reject(error);
						}
						return performance.now() - beganMs;
					},
				});
				schedule();
			});
		},
		/** Like `next`, but returns undefined if the step may start now. */
		begin(owner: string, stepMs: number, continues = false): Promise<void> | undefined {
			if (!isFree()) return this.next(owner, stepMs, continues);
			spend(owner, stepMs);
			return undefined;
		},
		/**
		 * Resolves in a later turn, when a step of `stepMs` may start. `continues`: the work has already begun and precedes
		 * other work of its owner, so that little work is half done at a time.
		 */
		next(owner: string, stepMs: number, continues: boolean): Promise<void> {
			return new Promise((resolve) => {
				const waiter: Waiter = {
					owner,
					go() {
						lines.delete(node);
						spend(owner, stepMs);
						resolve();
						return undefined;
					},
				};
				const node = continues ? lines.addFirst(waiter) : lines.add(waiter);
				schedule();
			});
		},
	};
}
