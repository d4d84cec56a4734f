/** Runs work one at a time. A run that rejects calls `onError` and cancels the following one. */
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
		/** Starts a run. During a run, calls together cause one more after it. Never rejects. */
		run() {
			again = true;
			running ??= runAll();
			return running;
		},
		/** The current run and, if there is one, the following run. */
		running: () => running,
	};
}
