import { type Clock, sleep, systemClock, withDeadline } from "../base/clock.ts";

export interface ReadyMessage {
	readonly ready: true;
	/** The demo's models, which a gateway sends on the first run. */
	readonly demo?: unknown;
}

export interface WorkerProcessOptions {
	/** Name in the log, such as `gateway-1` or `console`. */
	readonly name: string;
	readonly argv: readonly string[];
	readonly env: Readonly<Record<string, string>>;
	/** Checks that the process responds. A process that fails for about 20 s is killed. */
	readonly ask?: (signal: AbortSignal) => Promise<unknown>;
}

export type WorkerProcess = ReturnType<typeof startWorkerProcess>;

/** Starts one process of a worker slot. A slot has two processes while one replaces the other. */
export function startWorkerProcess(
	options: WorkerProcessOptions,
	on: { onEnd: (exitCode: number | null, signal: string | number | null) => void; onHung: () => void },
) {
	const { name, ask } = options;
	const ready = Promise.withResolvers<ReadyMessage>();
	let wasReady = false;
	ready.promise.catch(() => {});
	const process = Bun.spawn([...options.argv], {
		env: { ...options.env },
		stdio: ["ignore", "inherit", "inherit"],
		ipc(message) {
			if ((message as Partial<ReadyMessage>)?.ready !== true) return;
			wasReady = true;
			ready.resolve(message as ReadyMessage);
		},
		onExit: (_, exitCode, signal) => {
			ready.reject(new Error(`${name} ended before it was ready`));
			on.onEnd(exitCode, signal);
		},
	});
	const whenReady = (then: () => void) => void ready.promise.then(then, () => {});
	// The checks start when the process is ready, and stop when it ends.
	if (ask !== undefined)
		whenReady(() => {
			const end = watchLiveness({ clock: systemClock }, { ask, onHung: on.onHung });
			void process.exited.then(end);
		});
	return {
		process,
		/** Resolves when the process is ready; rejects if the process ends before. */
		ready: ready.promise,
		wasReady: () => wasReady,
		startedAtMs: performance.now(),
		/** Sends a message once the process is ready. `lastWord` is called then, so it returns the newest message. */
		say: (lastWord: () => unknown) =>
			whenReady(() => {
				try {
					process.send(lastWord());
				} catch {
					// Sending fails if the process is ending, which needs no message.
				}
			}),
		/** Sends a signal as soon as the process is ready: before it has a listener, the signal would end the process. */
		signal: (signal: NodeJS.Signals) => whenReady(() => process.kill(signal)),
	};
}

/** Pause between two checks, and deadline of each check. */
const ASK_MS = 3_000;
/** Failed checks in a row, over about 20 s, after which a process counts as hanging. */
const UNANSWERED_MAX = 3;

/** Checks a process; after UNANSWERED_MAX failed checks in a row calls `onHung`. Returns a function that stops it. */
export function watchLiveness(
	{ clock }: { clock: Clock },
	options: { ask: (signal: AbortSignal) => Promise<unknown>; onHung: () => void },
): () => void {
	let ended = false;

	async function answers(): Promise<boolean> {
		const leave = new AbortController();
		try {
			await withDeadline(clock, options.ask(leave.signal), ASK_MS, () => new Error("no answer"));
			return true;
		} catch {
			leave.abort();
			return false;
		}
	}

	async function watch(): Promise<void> {
		for (let unanswered = 0; unanswered < UNANSWERED_MAX; ) {
			await sleep(clock, ASK_MS);
			if (ended) return;
			unanswered = (await answers()) ? 0 : unanswered + 1;
			if (ended) return;
		}
		options.onHung();
	}

	void watch();
	return () => (ended = true);
}
