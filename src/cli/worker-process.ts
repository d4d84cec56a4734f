import type { Subprocess } from "bun";
import { type Clock, sleep, systemClock, withDeadline } from "../base/clock.ts";

/** One process of a worker slot: current, successor or leaving. */
export interface WorkerProcess {
	readonly process: Subprocess;
	/** Rejects if it ends before. */
	readonly ready: Promise<ReadyMessage>;
	wasReady(): boolean;
	readonly startedAtMs: number;
	/** Once it is ready, since before it would not understand; what the last word is by then. */
	say(lastWord: () => unknown): void;
	/** Once it is ready: until then it does not listen, and such a signal would end it. */
	signal(signal: NodeJS.Signals): void;
}

/** What a child tells its parent. */
export interface ReadyMessage {
	readonly ready: true;
	/** Of a gateway on the first run: what it serves. */
	readonly demo?: unknown;
}

export interface WorkerProcessOptions {
	/** For the log: `gateway-1`, `console`. */
	readonly name: string;
	readonly argv: readonly string[];
	readonly env: Readonly<Record<string, string>>;
	/** Asks the process whether it lives. One that does not say so for about 20 s is killed. */
	readonly ask?: (signal: AbortSignal) => Promise<unknown>;
}

export function startWorkerProcess(
	options: WorkerProcessOptions,
	on: {
		onEnd: (exitCode: number | null, signal: string | number | null) => void;
		onHung: () => void;
	},
): WorkerProcess {
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
	// From when it is ready until it leaves: then its successor is asked.
	if (ask !== undefined)
		whenReady(() => {
			const end = watchLiveness({ clock: systemClock }, { ask, onHung: on.onHung });
			void process.exited.then(end);
		});
	return {
		process,
		ready: ready.promise,
		wasReady: () => wasReady,
		startedAtMs: performance.now(),
		say: (lastWord) =>
			whenReady(() => {
				try {
					process.send(lastWord());
				} catch {
					// It is ending, or has ended.
				}
			}),
		signal: (signal) => whenReady(() => process.kill(signal)),
	};
}

/** Between two questions, and as long as one may go unanswered. */
const ASK_MS = 3_000;
/** So many unanswered ones in a row, over about 20 s, are no pause of a process that works. */
const UNANSWERED_MAX = 3;

interface LivenessOptions {
	/** Rejects, or never ends, if nobody is there; its signal says when the answer is not waited for any more. */
	readonly ask: (signal: AbortSignal) => Promise<unknown>;
	/** Nobody answered for so long: called once, and nothing is asked any more. */
	readonly onHung: () => void;
}

/** Asks a process again and again whether it lives. The function that is returned ends that. */
export function watchLiveness(deps: { clock: Clock }, options: LivenessOptions): () => void {
	const { clock } = deps;
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
