/** Runs work one at a time. A run that rejects calls `onError` and cancels the next one. */
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
		/** Starts a run; if one is running, exactly one more follows it. Never rejects. */
		run() {
			again = true;
			running ??= runAll();
			return running;
		},
		/** The current run, including the one that follows it. */
		running: () => running,
	};
}
