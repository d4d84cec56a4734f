/** Work with at most one run at a time. A run that rejects calls `onError`, and no other follows it. */
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
		/** Starts a run; while one is under way, exactly one more follows it. Never rejects. */
		run() {
			again = true;
			running ??= runAll();
			return running;
		},
		/** The run under way, including the one that follows. */
		running: () => running,
	};
}
