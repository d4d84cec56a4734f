import { type Clock, sleep, systemClock, withDeadline } from "../base/clock.ts";

export interface ReadyMessage {
	readonly ready: true;
	/** From a gateway on the first run: its models. */
	readonly demo?: unknown;
}

export interface WorkerProcessOptions {
	/** For the log: `gateway-1`, `console`. */
	readonly name: string;
	readonly argv: readonly string[];
	readonly env: Readonly<Record<string, string>>;
	/** Checks that the process lives. A process that does not answer for about 20 s is killed. */
	readonly ask?: (signal: AbortSignal) => Promise<unknown>;
}

export type WorkerProcess = ReturnType<typeof startWorkerProcess>;

/** One process of a worker slot: current, successor or leaving. */
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
	// Checks run from readiness until the process leaves.
	if (ask !== undefined)
		whenReady(() => {
			const end = watchLiveness({ clock: systemClock }, { ask, onHung: on.onHung });
			void process.exited.then(end);
		});
	return {
		process,
		/** Rejects if the process ends first. */
		ready: ready.promise,
		wasReady: () => wasReady,
		startedAtMs: performance.now(),
		/** Sends a message once the process is ready, since it does not listen earlier. `lastWord` is called only then. */
		say: (lastWord: () => unknown) =>
			whenReady(() => {
				try {
					process.send(lastWord());
				} catch {
					// The process is ending, or has ended.
				}
			}),
		/** Sends a signal once the process is ready: earlier, without its listener, the signal would end it. */
		signal: (signal: NodeJS.Signals) => whenReady(() => process.kill(signal)),
	};
}

/** The pause between two checks, and the deadline of one. */
const ASK_MS = 3_000;
/** This many failed checks in a row, over about 20 s, are no pause of a working process. */
const UNANSWERED_MAX = 3;

/**
 * Checks a process until UNANSWERED_MAX checks in a row fail, then calls `onHung`. Returns the function that ends it.
 */
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
	return () => {
		ended = true;
	};
}
