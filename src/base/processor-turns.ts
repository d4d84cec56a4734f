import { CounterMap } from "./counter-map.ts";
import { createFairLines } from "./fair-lines.ts";

/** Milliseconds of work before other work of the event loop runs. A step that exceeds them is still completed. */
const TURN_MS = 2;
/** Requests that are answered at once in a turn even after TURN_MS, so that a few pipelined requests are answered. */
const AT_ONCE_MIN = 8;
/** Length in milliseconds of a window, in which used processor time counts against an owner. */
const WINDOW_MS = 250;
/** Maximum milliseconds of refused work per window, of one owner and of all; beyond it, owners wait for the next. */
const REFUSED_MS_MAX = 25;
const ALL_REFUSED_MS_MAX = 50;
/** Processor time assumed for dropping a step whose client has disconnected. */
const ABANDONED_MS = 1 / 64;
/** Added to the rank of owners beyond REFUSED_MS_MAX, so that they are served after all others. */
const LAST_US = 1e12;

interface Waiter {
	readonly owner: string;
	/** Starts the step. Returns how long it took or will take; undefined if unknown, which ends the slice. */
	go(): number | undefined;
}

/**
 * Divides the event loop among owners with much work. Work runs at once while the slice has time left. Otherwise it
 * waits, and the owner that has used the least processor time in the current window is next.
 */
export function createProcessorTurns() {
	let window = newWindow();
	const rests = (owner: string) =>
		window.refusedMs.of(owner) > (window.allRefusedMs > ALL_REFUSED_MS_MAX ? 0 : REFUSED_MS_MAX);
	const lines = createFairLines<Waiter>(
		({ owner }) => owner,
		(owner) => window.spentUs.of(owner) + (rests(owner) ? LAST_US : 0),
	);
	let usedMs = 0;
	let isScheduled = false;
	let isResting = false;
	/** Requests that were answered at once in this turn, and when the last one began. */
	const atOnce = { requests: 0, lastMs: 0 };

	const isFree = (owner: string) => usedMs < TURN_MS && lines.size() === 0 && !rests(owner);

	function schedule(): void {
		if (isScheduled) return;
		isScheduled = true;
		setImmediate(turn);
	}

	function spend(owner: string, ms: number): void {
		usedMs += ms;
		window.spentUs.add(owner, Math.ceil(ms * 1_000));
		lines.goBehind(owner);
		// At half, so that work of later turns of the event loop begins a new slice before this one is used up.
		if (usedMs >= TURN_MS / 2) schedule();
	}

	/** True if a step may start at once; it is then charged to its owner. */
	function mayBegin(owner: string, stepMs: number): boolean {
		if (!isFree(owner)) return false;
		spend(owner, stepMs);
		return true;
	}

	function chargeRefused(owner: string, ms: number): void {
		window.refusedMs.add(owner, ms);
		window.allRefusedMs += ms;
	}

	function restUntil(ms: number): void {
		if (isResting) return;
		isResting = true;
		setTimeout(() => {
			isResting = false;
			schedule();
		}, ms);
	}

	function turn(): void {
		isScheduled = false;
		usedMs = 0;
		atOnce.requests = 0;
		const nowMs = performance.now();
		// A window that starts in the future belongs to a clock that was set back since.
		if (nowMs >= window.endsMs || nowMs < window.endsMs - WINDOW_MS) window = newWindow();
		for (let next = lines.first(); next !== undefined; next = lines.first()) {
			if (rests(next.owner)) return void restUntil(window.endsMs - nowMs);
			const took = next.go();
			if (took !== undefined) spend(next.owner, took);
			if (took === undefined || usedMs >= TURN_MS) break;
		}
		if (lines.size() > 0) schedule();
	}

	return {
		/** Charges `ms` of processor time to an owner. */
		spend,
		/** Charges refused work of `ms` to an owner whose client does not wait for an answer. */
		charge: chargeRefused,
		/**
		 * Charges refused work to its owner. Resolves when the refusal may be answered, which lets the client send the next
		 * work, or when `signal` is aborted; undefined if at once. An owner beyond its limit waits, and is charged again for
		 * that next work.
		 */
		refused(owner: string, ms: number, signal?: AbortSignal): Promise<void> | undefined {
			chargeRefused(owner, ms);
			if (!rests(owner) || signal?.aborted) return undefined;
			return new Promise((resolve) => {
				const leave = () => {
					lines.delete(node);
					resolve();
				};
				// Returns the time, so that the owner goes behind the others.
				const go = () => {
					chargeRefused(owner, ms);
					leave();
					return ms;
				};
				const node = lines.add({ owner, go });
				signal?.addEventListener("abort", leave, { once: true });
				schedule();
			});
		},
		/**
		 * True if a request may be answered at once: the first `AT_ONCE_MIN` requests in this turn of the event loop, and
		 * more until TURN_MS after the first. Otherwise the request waits for its owner's turn, see `run`.
		 */
		mayAnswer(): boolean {
			const nowMs = performance.now();
			if (atOnce.requests > 0) usedMs += nowMs - atOnce.lastMs;
			atOnce.lastMs = nowMs;
			if (lines.size() > 0 || (usedMs >= TURN_MS && atOnce.requests >= AT_ONCE_MIN)) return false;
			atOnce.requests += 1;
			schedule();
			return true;
		},
		/** Runs a short step of work, at once or when it is the owner's turn. */
		run<Result>(owner: string, work: () => Result | Promise<Result>): Result | Promise<Result> {
			if (isFree(owner)) {
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
		/** Like `next`, but returns undefined if the step may start at once. */
		begin(owner: string, stepMs: number, continues = false): Promise<void> | undefined {
			return mayBegin(owner, stepMs) ? undefined : this.next(owner, stepMs, continues);
		},
		mayBegin,
		/**
		 * Resolves when a step of `stepMs` (0: unknown) may start. `continues`: the work has already begun, so it goes
		 * before other work of its owner; little work is then unfinished at a time. `signal`: resolves too if it is aborted,
		 * in the owner's turn, and charges ABANDONED_MS only.
		 */
		next(owner: string, stepMs: number, continues: boolean, signal?: AbortSignal): Promise<void> {
			return new Promise((resolve) => {
				const waiter: Waiter = {
					owner,
					go() {
						lines.delete(node);
						resolve();
						return signal?.aborted ? ABANDONED_MS : stepMs || undefined;
					},
				};
				const node = continues ? lines.addFirst(waiter) : lines.add(waiter);
				schedule();
			});
		},
	};
}

function newWindow() {
	const endsMs = performance.now() + WINDOW_MS;
	return { endsMs, spentUs: new CounterMap(), refusedMs: new CounterMap(), allRefusedMs: 0 };
}
