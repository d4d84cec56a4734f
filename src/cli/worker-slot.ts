import type { Log } from "../base/log.ts";
import { createStates } from "../base/states.ts";
import type { EndSignal } from "./end-signals.ts";
import { startWorkerProcess, type WorkerProcess, type WorkerProcessOptions } from "./worker-process.ts";

export interface WorkerSlotOptions extends WorkerProcessOptions {
	/** Message to the present process that tells it to end, because its successor is ready. */
	readonly retire: string;
	/** Milliseconds from the request to stop a process until it is killed. */
	readonly stopMsMax: number;
	/** Milliseconds until a successor that is not ready is killed; the present process then continues. */
	readonly readyMsMax?: number;
}

/** Longest start. A gateway may wait minutes for migrations and its database. */
const READY_MS_MAX = 10 * 60_000;
const RESTART_MS_MIN = 100;
const RESTART_MS_MAX = 10_000;
/** A process that ran for at least this time is started again without a pause. */
const STABLE_MS = 30_000;

/** `empty`: no process is running; either another one starts later, or `givesUp` was true. */
type SlotState = "running" | "empty" | "stopping";

const TRANSITIONS: Readonly<Record<SlotState, readonly SlotState[]>> = {
	running: ["empty", "stopping"],
	empty: ["running", "stopping"],
	stopping: [],
};

export type WorkerSlot = ReturnType<typeof startWorkerSlot>;

/** Keeps one process running: starts another when it ends, unless `givesUp` returns true. */
export function startWorkerSlot(deps: { log: Log; givesUp: () => boolean }, options: WorkerSlotOptions) {
	const { log } = deps;
	const { name } = options;
	let present: WorkerProcess | undefined;
	/** Processes other than the present one: those that are ending, or not ready yet. */
	const others = new Set<WorkerProcess>();
	/** The process in `others` that becomes the present one when it is ready. */
	let successor: WorkerProcess | undefined;
	let failuresInRow = 0;
	const states = createStates(TRANSITIONS, "running");
	let stopping: Promise<boolean> | undefined;
	let inOrder = true;
	/** True after the death of a process that was ready, until another process is ready. */
	let hasNoReadyWorker = false;
	let lastWord: unknown;
	const empty = Promise.withResolvers<void>();

	function start(): WorkerProcess {
		const worker = startWorkerProcess(options, {
			onEnd: (exitCode, signal) => ended(worker, exitCode, signal),
			onHung() {
				if (present !== worker) return;
				log.error("a process does not answer; ending it", { child: name });
				worker.process.kill("SIGKILL");
			},
		});
		worker.ready.then(
			() => (hasNoReadyWorker = false),
			() => {},
		);
		if (lastWord !== undefined) worker.say(() => lastWord);
		return worker;
	}

	function ended(worker: WorkerProcess, exitCode: number | null, signal: string | number | null): void {
		const wasPresent = present === worker;
		if (wasPresent) present = undefined;
		const wasToLeave = others.delete(worker) || states.is("stopping");
		if (successor === worker) successor = undefined;
		// The failure of a successor that was never ready is reported by `replace`, not here.
		if (wasToLeave && (worker.wasReady() || hasNoReadyWorker) && exitCode !== 0) {
			inOrder = false;
			log.error("a stopping process did not exit cleanly", { child: name, exitCode, signal });
		}
		if (states.is("stopping")) {
			if (present === undefined && others.size === 0) empty.resolve();
			return;
		}
		if (!wasPresent) return;
		states.enter("empty");
		if (deps.givesUp()) {
			log.error("a process ended before it was ready", { child: name, exitCode, signal });
			return;
		}
		hasNoReadyWorker ||= worker.wasReady();
		if (successor !== undefined) {
			log.error("a process died; its successor is already starting", { child: name, exitCode, signal });
			takeOffice(successor);
			return;
		}
		const lived = performance.now() - worker.startedAtMs;
		failuresInRow = lived > STABLE_MS ? 0 : failuresInRow + 1;
		const waitMs = failuresInRow === 0 ? 0 : Math.min(RESTART_MS_MAX, RESTART_MS_MIN * 2 ** (failuresInRow - 1));
		log.error("a process died; starting it again", { child: name, exitCode, signal, waitMs });
		setTimeout(() => {
			if (states.is("empty")) takeOffice(start());
		}, waitMs);
	}

	/** Makes the starting successor the present process, instead of starting a third process for its socket. */
	function takeOffice(worker: WorkerProcess): void {
		others.delete(worker);
		successor = undefined;
		present = worker;
		if (states.is("empty")) states.enter("running");
	}

	const everybody = () => [...(present === undefined ? [] : [present]), ...others];

	function kill(): void {
		for (const { process } of everybody()) process.kill("SIGKILL");
	}

	async function leave(signal: EndSignal): Promise<boolean> {
		const all = everybody();
		if (all.length === 0) {
			if (hasNoReadyWorker) log.error("a dead process had not been started again before the stop", { child: name });
			return !hasNoReadyWorker;
		}
		inOrder = true;
		for (const { process } of all) process.kill(signal);
		const timer = setTimeout(() => {
			log.warn("a process does not stop in time; killing it", { child: name, afterMs: options.stopMsMax });
			kill();
		}, options.stopMsMax);
		await empty.promise;
		clearTimeout(timer);
		return inOrder;
	}

	/** Awaits `done`; kills the process after `msMax`, so that its successor can take over the journal. */
	async function within(msMax: number, worker: WorkerProcess, done: Promise<unknown>, what: string): Promise<void> {
		const timer = setTimeout(() => {
			log.warn(`${what}; killing it`, { child: name, afterMs: msMax });
			worker.process.kill("SIGKILL");
		}, msMax);
		try {
			await done;
		} finally {
			clearTimeout(timer);
		}
	}

	present = start();
	return {
		/** Resolves when the first process is ready; rejects if that process ends before. */
		ready: present.ready,
		/** Sends a signal to the present process as soon as it is ready. */
		signal: (signal: NodeJS.Signals) => present?.signal(signal),
		/** Sends a message to the present process and to every later one when it is ready. Only the last message counts. */
		tell(word: unknown) {
			lastWord = word;
			present?.say(() => lastWord);
			for (const worker of others) worker.say(() => lastWord);
		},
		/**
		 * Starts a successor, and stops the present process once the successor is ready. Kills processes that hang. Rejects
		 * if the successor ends, or is not ready within `readyMsMax`.
		 */
		async replace() {
			const next = start();
			successor = next;
			others.add(next);
			if (present === undefined) takeOffice(next);
			await within(options.readyMsMax ?? READY_MS_MAX, next, next.ready, "a successor is not ready in time");
			const old = present;
			if (old === next) return;
			takeOffice(next);
			if (old === undefined) return;
			others.add(old);
			old.process.send(options.retire);
			await within(options.stopMsMax, old, old.process.exited, "a replaced process does not stop in time");
		},
		/**
		 * Stops all processes of the slot; kills them after the deadline. Returns false if a process that was ready did not
		 * exit cleanly, or had died without a replacement.
		 */
		stop(signal: EndSignal) {
			if (!states.is("stopping")) states.enter("stopping");
			stopping ??= leave(signal);
			return stopping;
		},
		kill,
	};
}
