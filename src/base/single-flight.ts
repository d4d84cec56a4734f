/** Work of which one run is under way at a time. */
export interface SingleFlight {
	/** Starts a run; while one is under way, another one follows it, however often this is called. Never rejects. */
	run(): Promise<void>;
	/** What is under way, with the run that follows. */
	running(): Promise<void> | undefined;
}

/** A run that rejects calls `onError` and is followed by no other. */
export function createSingleFlight(work: () => Promise<void>, onError: (error: unknown) => void): SingleFlight {
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
		run() {
			again = true;
			running ??= runAll();
			return running;
		},
		running: () => running,
	};
}
