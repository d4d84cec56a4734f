import type { Subprocess } from "bun";
import { type Clock, sleep, systemClock, withDeadline } from "../base/clock.ts";

/** One process of a worker slot: current, successor or leaving. */
export interface WorkerProcess {
	readonly process: Subprocess;
	/** Rejects if the process ends first. */
	readonly ready: Promise<ReadyMessage>;
	wasReady(): boolean;
	readonly startedAtMs: number;
	/** Sends a message once the process is ready, since it does not listen earlier. `lastWord` is called only then. */
	say(lastWord: () => unknown): void;
	/** Sends a signal once the process is ready: earlier, without its listener, the signal would end it. */
	signal(signal: NodeJS.Signals): void;
}

/** A child's message to its parent. */
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
	// Checks run from readiness until the process leaves.
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
					// The process is ending, or has ended.
				}
			}),
		signal: (signal) => whenReady(() => process.kill(signal)),
	};
}

/** The pause between two checks, and the deadline of one. */
const ASK_MS = 3_000;
/** This many failed checks in a row, over about 20 s, are no pause of a working process. */
const UNANSWERED_MAX = 3;

interface LivenessOptions {
	/** Rejects, or never settles, if the process does not answer. The signal aborts at the deadline. */
	readonly ask: (signal: AbortSignal) => Promise<unknown>;
	/** Called once after UNANSWERED_MAX failed checks; no check follows. */
	readonly onHung: () => void;
}

/** Checks a process repeatedly. The returned function stops the checks. */
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
