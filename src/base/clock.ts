/** Time, so that tests and the simulation can move it. Wall time is for records, monotonic time for durations. */
export interface Clock {
	/** Milliseconds since 1970; may jump. */
	wallMs(): number;
	/** Milliseconds since some fixed moment; never goes back, but stops while a virtual machine is suspended. */
	monotonicMs(): number;
	/** Calls `run` once after `delayMs`; the returned function cancels it. */
	after(delayMs: number, run: () => void): () => void;
}

export const systemClock: Clock = {
	wallMs: () => Date.now(),
	monotonicMs: () => performance.now(),
	after(delayMs, run) {
		const timer = setTimeout(run, delayMs);
		return () => clearTimeout(timer);
	},
};

/** Resolves after `delayMs` on `clock`. */
export function sleep(clock: Clock, delayMs: number): Promise<void> {
	return new Promise((resolve) => clock.after(delayMs, resolve));
}

/** Rejects with `onTimeout()` if `work` has not settled within `delayMs`; `work` itself goes on. */
export function withDeadline<T>(
	clock: Clock,
	work: PromiseLike<T>,
	delayMs: number,
	onTimeout: () => Error,
): Promise<T> {
	return new Promise<T>((resolve, reject) => {
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
	});
}
