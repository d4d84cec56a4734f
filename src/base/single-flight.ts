/** Runs `work` one at a time. A run that rejects calls `onError` and cancels the waiting run. */
export function createSingleFlight(work: () => Promise<void>, onError: (error: unknown) => void) {
	let running: Promise<void> | undefined;
	let again = false;

	async function runAll(): Promise<void> {
		try {
			while (again) {
				again = false;
				await work();
			}
		} catch (error) {
			onError(error);
		} finally {
			running = undefined;
		}
	}

	return {
		/** Starts a run. All calls during a run cause one more run after it. Never rejects. */
		run() {
			again = true;
			running ??= runAll();
			return running;
		},
		/** Resolves after the current run and, if there is one, the waiting run. */
		running: () => running,
	};
}
