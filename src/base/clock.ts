import { createTimerWheel } from "./timer-wheel.ts";

/** Source of time, which tests and the simulation replace. Wall time is for records, monotonic time for durations. */
export interface Clock {
	/** Milliseconds since 1970. Jumps when the system's clock is set. */
	wallMs(): number;
	/** Milliseconds since an arbitrary time. Never decreases, but stops while a virtual machine is suspended. */
	monotonicMs(): number;
	/** Calls `run` once after `delayMs`. The returned function cancels the call. */
	after(delayMs: number, run: () => void): () => void;
}

/** Timers of at least this delay may be two ticks late, three after a stall; shorter timers only after a stall. */
const COARSE_DELAY_MS_MIN = 2_000;
const COARSE_TICK_MS = 100;
/** Lateness that indicates a stall of the event loop: more than a heavy request, less than COARSE_DELAY_MS_MIN. */
const STALL_MS = 500;

const wheel = createTimerWheel({
	nowMs: () => performance.now(),
	tickMs: COARSE_TICK_MS,
	stallMs: STALL_MS,
	every(tickMs, tick) {
		const timer = setInterval(tick, tickMs);
		return () => clearInterval(timer);
	},
});

export const systemClock: Clock = {
	wallMs: () => Date.now(),
	monotonicMs: () => performance.now(),
	after(delayMs, run) {
		if (delayMs >= COARSE_DELAY_MS_MIN && Number.isFinite(delayMs)) return wheel.after(delayMs, run);
		return shortly(delayMs, run);
	},
};

/** Waits for a short delay; after a stall of the event loop one tick more, so that waiting input is read first. */
function shortly(delayMs: number, run: () => void): () => void {
	const dueMs = performance.now() + delayMs;
	let timer = setTimeout(() => {
		if (performance.now() - dueMs < STALL_MS) run();
		else timer = setTimeout(run, COARSE_TICK_MS);
	}, delayMs);
	return () => clearTimeout(timer);
}

export function sleep(clock: Clock, delayMs: number): Promise<void> {
	return new Promise((resolve) => clock.after(delayMs, resolve));
}

/** Rejects with `onTimeout()` if `work` has not settled within `delayMs`. Does not stop `work`. */
export function withDeadline<T>(
	clock: Clock,
	work: PromiseLike<T>,
	delayMs: number,
	onTimeout: () => Error,
): Promise<T> {
	const { promise, resolve, reject } = Promise.withResolvers<T>();
	const cancel = clock.after(delayMs, () => reject(onTimeout()));
	work.then(
		(value) => {
			cancel();
			resolve(value);
		},
		(error) => {
			cancel();
			reject(error);
		},
	);
	return promise;
}
