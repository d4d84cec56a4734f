import type { Clock } from "../base/clock.ts";
import { Fault } from "../base/fault.ts";
import type { Log } from "../base/log.ts";
import { createSingleFlight } from "../base/single-flight.ts";
import { type BatchBooks, RunLost } from "./batch-books.ts";
import type { BatchRecord } from "./batch-record.ts";
import type { LineWork } from "./line-work.ts";
import type { OutcomeWriter } from "./outcomes.ts";

const TICK_MS = 1_000;
/** Shortest time between two seals; it grows with the number of parts. A crash loses outcomes since the last seal. */
const SEAL_MS_MIN = 200;
const SEAL_MS_MAX = 10_000;
const SEAL_MS_PER_PART = 5;
const SEAL_CHARS = 4 * 1024 * 1024;
/** A batch that could not send a line for this long gives its place on the instance to a waiting batch. */
const STUCK_MS = 60_000;
/** Grace for lines in flight when the batch ends, because a line that yielded its place could wait forever. */
const END_GRACE_MS = 10 * 60_000;

/** Runs in parallel to the sender of lines: stores progress, reads requested changes, seals outcomes. */
export function startBatchTick(
	{ books, clock, log }: { books: BatchBooks; clock: Clock; log: Log },
	/** `isPast`: the batch's time limit has passed by Postgres's clock. */
	batch: BatchRecord & { readonly isPast: boolean },
	{ work, outcomes, signal }: { work: LineWork; outcomes: OutcomeWriter; signal: AbortSignal },
	/** `graceMs` and `othersWait` as in `RunDeps`. */
	options: { graceMs: number; othersWait(): Promise<boolean> },
) {
	const over = new AbortController();
	const telling = createSingleFlight(tell, (error) =>
		log.debug("the progress of a batch could not be stored", { batch: batch.id, error }),
	);
	const sealing = createSingleFlight(seal, (error) => {
		if (error instanceof RunLost) work.stop("lost");
		else if (error instanceof Fault) work.fail(error);
		else if (!over.signal.aborted) log.error("outcomes of a batch could not be stored", { batch: batch.id, error });
	});
	let sealedAtMs = clock.monotonicMs();
	let stoppedAtMs: number | undefined;
	let cancelTimer = clock.after(TICK_MS, tick);
	let cancelSeal = clock.after(SEAL_MS_MIN, lookAtOutcomes);
	let cancelCutOff = () => {};
	const onStop = () => {
		work.stop("shutdown");
		cancelCutOff = clock.after(options.graceMs, work.cutOff);
	};
	if (batch.state === "cancelling") work.stop("cancelled");
	// Checked before the first tick, so that a batch whose time limit has passed sends nothing.
	else if (isOver(batch)) work.stop("expired");
	if (signal.aborted) onStop();
	else signal.addEventListener("abort", onStop, { once: true });

	function tick(): void {
		cancelTimer = clock.after(TICK_MS, tick);
		if (work.isStopped()) stoppedAtMs ??= clock.monotonicMs();
		if (stoppedAtMs !== undefined && clock.monotonicMs() - stoppedAtMs > END_GRACE_MS) work.cutOff();
		void telling.run();
	}

	function lookAtOutcomes(): void {
		cancelSeal = clock.after(SEAL_MS_MIN, lookAtOutcomes);
		if (sealing.running() === undefined && isDue()) void sealing.run();
	}

	async function tell(): Promise<void> {
		const now = await books.tick(batch.id, batch.run, progress());
		if (now === undefined) work.stop("lost");
		else if (now.state === "cancelling") work.stop("cancelled");
		else if (isOver(now)) work.stop("expired");
		else if (isStuck() && (await options.othersWait())) work.stop("aside");
	}

	/** Checks both clocks, because a batch that has ended cannot be resumed. */
	function isOver({ isPast, expiresAtMs }: { isPast: boolean; expiresAtMs: number }): boolean {
		return isPast && clock.wallMs() >= expiresAtMs;
	}

	/** True if nothing was sent for STUCK_MS, for example for lack of credit; false if Postgres refuses the outcomes. */
	function isStuck(): boolean {
		const pause = work.pause();
		if (pause === null || outcomes.pause() !== null || work.inFlight() > 0) return false;
		return clock.wallMs() - pause.sinceMs >= STUCK_MS;
	}

	function progress() {
		return { total: batch.total, ...outcomes.counts(), paused: outcomes.pause() ?? work.pause() };
	}

	function isDue(): boolean {
		const afterMs = Math.min(SEAL_MS_MAX, SEAL_MS_MIN + outcomes.parts() * SEAL_MS_PER_PART);
		if (outcomes.bytes() >= SEAL_CHARS) return true;
		return clock.monotonicMs() - sealedAtMs >= afterMs;
	}

	async function seal(): Promise<void> {
		try {
			work.giveBack();
			await outcomes.flush(over.signal);
		} finally {
			sealedAtMs = clock.monotonicMs();
		}
	}

	return {
		/** Stores the progress for the last time. Rejects with RunLost. */
		async last() {
			cancelTimer();
			// An earlier write must not finish after this last one.
			await telling.running();
			if ((await books.tick(batch.id, batch.run, progress())) === undefined) throw new RunLost();
		},
		stop() {
			over.abort();
			cancelTimer();
			cancelSeal();
			cancelCutOff();
			signal.removeEventListener("abort", onStop);
		},
	};
}
