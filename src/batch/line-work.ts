import type { Clock } from "../base/clock.ts";
import { Fault } from "../base/fault.ts";
import { newUuid } from "../base/id.ts";
import type { Log } from "../base/log.ts";
import { nextTurn } from "../base/time-slice.ts";
import { isDatabaseDown } from "../db/outage.ts";
import type { KeyDigest } from "../keys/secret.ts";
import type { BatchBooks } from "./batch-books.ts";
import type { OpenLine } from "./batch-line.ts";
import type { BatchPause, BatchRecord, BatchUsage } from "./batch-record.ts";
import { createLineQueue, type QueuedLine } from "./line-queue.ts";
import { answeredLine, interruptedError, lineRetryDecision, parseErrorBody, unansweredLine } from "./line-text.ts";
import type { OutcomeWriter } from "./outcomes.ts";

/** Maximum number of concurrent lines of a batch on one instance. */
const IN_FLIGHT_MAX = 32;
const HOLD_MS_MIN = 250;
const HOLD_MS_MAX = 15_000;

/** Adapts the number of concurrent lines: lowers it and adds pauses while credit or capacity is short. */
function createLinePace({ clock }: { clock: Clock }) {
	let window = IN_FLIGHT_MAX;
	let holdMs = HOLD_MS_MIN;
	let holdUntilMs = 0;
	let pause: BatchPause | null = null;

	function hold(): void {
		holdUntilMs = clock.monotonicMs() + holdMs;
		holdMs = Math.min(holdMs * 2, HOLD_MS_MAX);
	}

	return {
		window: () => window,
		/** Milliseconds until the next line may be sent; 0 or less: immediately. */
		heldMs: () => holdUntilMs - clock.monotonicMs(),
		hold,
		holdFor(ms: number): void {
			holdUntilMs = clock.monotonicMs() + ms;
		},
		/** Call it when a line was answered, to end a pause. */
		went(): void {
			pause = null;
			holdMs = HOLD_MS_MIN;
			window = Math.min(window + 1, IN_FLIGHT_MAX);
		},
		/** Records a refusal and halves the limit. If even a single line is refused, the batch pauses for this reason. */
		refused({ code, message }: { code: string; message: string }, others: number): void {
			window = Math.max(1, Math.floor(others / 2));
			hold();
			if (others > 0) return;
			pause = pause?.code === code ? pause : { code, message, sinceMs: clock.wallMs() };
		},
		pause: () => pause,
	};
}

/** Sends lines; the gateway implements it. */
export interface LineSender {
	/** Serves the line like any client's request. Never rejects. */
	answer(line: {
		readonly batchId: string;
		readonly requestUuid: string;
		readonly model: string;
		readonly endpoint: string;
		readonly keyDigest: KeyDigest;
		readonly body: string;
		readonly signal: AbortSignal;
	}): Promise<Response>;
	/** Usage of a request, available once after its answer; undefined if this instance did not settle the request. */
	usageOf(requestUuid: string): BatchUsage | undefined;
	/**
	 * Waits for free capacity. Returns how many lines may be sent to the model, at least 1. Rejects when `signal` aborts.
	 * Fault service_unavailable if the model has no server.
	 */
	room(model: string, signal: AbortSignal): Promise<number>;
}

/** Why sending stopped. `aside`: no line can be sent now, and another batch waits to run on this instance. */
export type LineStopReason = "cancelled" | "expired" | "key" | "shutdown" | "lost" | "unreadable" | "aside";

/** Maximum number of attempts per line if model servers fail. The last failure then becomes the outcome. */
const FAILURES_MAX = 3;
const CLAIM_RETRY_MS = 500;
/** Interval at which Postgres is checked for accepting outcomes again. */
const REFUSED_LOOK_MS = 1_000;

/** Sends the lines of a batch, concurrently as far as capacity and credit allow. */
export function createLineWork(
	deps: {
		books: BatchBooks;
		carrier: LineSender;
		outcomes: OutcomeWriter;
		/** Ids of batches that wait because Postgres refuses their rows. */
		refused: Set<string>;
		clock: Clock;
		log: Log;
	},
	batch: BatchRecord & { readonly keyDigest: KeyDigest; readonly model: string },
	lines: AsyncGenerator<OpenLine, void>,
) {
	const { books, carrier, outcomes, refused, clock, log } = deps;
	const inFlight = new Set<Promise<void>>();
	const queue = createLineQueue({ outcomes }, batch, lines);
	const { again } = queue;
	const pace = createLinePace({ clock });
	const cutOff = new AbortController();
	let stop: LineStopReason | undefined;
	let failure: Error | undefined;
	let unread: unknown;
	const changes = createChanges(clock);
	/** Aborts the wait for capacity when another event must be handled. */
	let waiting = new AbortController();

	function changed(): void {
		changes.tell();
		waiting.abort();
	}

	/** Claims the lines in one statement, then sends them. Other tasks run between two lines. */
	async function send(taken: readonly QueuedLine[]): Promise<void> {
		const claims = taken.map((work) => ({ line: work.line, id: work.claimed ?? newUuid(), was: work.was }));
		let granted: ReadonlySet<number>;
		try {
			granted = await books.claim(batch.id, batch.run, claims);
		} catch (error) {
			const isAway = isDatabaseDown(error);
			if (isAway) log.info("lines of a batch could not be claimed; trying again", { batch: batch.id, error });
			else log.error("the database refuses claims of a batch's lines; trying again", { batch: batch.id, error });
			// The claim may have committed; retrying it with the same id is safe.
			for (const [at, work] of taken.entries()) again.push({ ...work, claimed: claims[at]?.id ?? null });
			if (isAway) pace.holdFor(CLAIM_RETRY_MS);
			else {
				pace.refused(UNCLAIMED, inFlight.size);
				refused.add(batch.id);
			}
			return;
		}
		if (outcomes.pause() === null) refused.delete(batch.id);
		if (granted.size < taken.length) changed();
		for (const [at, work] of taken.entries()) {
			if (at > 0) await nextTurn();
			const id = claims[at]?.id ?? "";
			const isGranted = granted.has(work.line);
			if (isGranted && stop === undefined) begin(work, id);
			// Postgres refused the claim, because the batch is ending or has a newer run. The next tick shows which.
			else tryAgain(work, isGranted ? id : work.was);
		}
		if (granted.size === 0) pace.hold();
	}

	/** Queues a line again. Its last request was not charged. */
	function tryAgain(work: QueuedLine, was: string | null): void {
		again.push({ ...work, was, claimed: null });
	}

	function begin(work: QueuedLine, id: string): void {
		const carried = carry(work, id).finally(() => {
			inFlight.delete(carried);
			changed();
		});
		inFlight.add(carried);
	}

	async function carry(work: QueuedLine, id: string): Promise<void> {
		const { line, read } = work;
		try {
			const { id: batchId, model, endpoint, keyDigest } = batch;
			const sent = { batchId, requestUuid: id, model, endpoint, keyDigest, body: read.body };
			const response = await carrier.answer({ ...sent, signal: cutOff.signal });
			judge(work, id, response.status, await response.text());
		} catch (error) {
			// Not sent again, because the request may have been charged.
			log.error("a line of a batch was lost", { batch: batch.id, line, error });
			const text = unansweredLine(read.customId, interruptedError(id), id);
			settle(work, { line, id, file: "error", text, usage: carrier.usageOf(id) });
		}
	}

	function judge(work: QueuedLine, id: string, status: number, text: string): void {
		const { line, read } = work;
		const error = status === 200 ? undefined : parseErrorBody(text);
		const decision = lineRetryDecision(status, error?.code ?? "");
		// Always read, because the carrier keeps usage until it is read.
		const usage = carrier.usageOf(id);
		const failures = work.failures + (decision === "failed" ? 1 : 0);
		const isFinal = decision === "final" || error === undefined;
		if (isFinal || (failures >= FAILURES_MAX && !cutOff.signal.aborted)) {
			const file = status === 200 ? "output" : "error";
			const answer = answeredLine(read.customId, id, status, text);
			settle(work, { line, id, file, text: answer, usage });
			if (isFinal) pace.went();
		} else if (cutOff.signal.aborted && decision === "failed") tryAgain(work, id);
		else {
			tryAgain({ ...work, failures }, id);
			if (decision === "key") stopWith("key");
			else pace.refused(error, inFlight.size - 1);
		}
	}

	function settle(work: QueuedLine, outcome: Parameters<OutcomeWriter["add"]>[0]): void {
		queue.ended(work);
		outcomes.add(outcome);
	}

	function stopWith(reason: LineStopReason): void {
		stop ??= reason;
		changed();
	}

	/** Number of lines to send now, as far as free capacity allows. */
	function wanted(): number {
		if (queue.isFull() && inFlight.size > 0) return 0;
		return pace.window() - inFlight.size;
	}

	/**
	 * Handles a failed wait for capacity. Without a Fault or an abort, the model has left the catalogue: pauses, so that
	 * the sender does not loop.
	 */
	function noRoom(error: unknown): number {
		if (error instanceof Fault) pace.refused(error, inFlight.size);
		else if (!waiting.signal.aborted) pace.hold();
		return 0;
	}

	/** Stops reading the input. Lines in flight finish, so that their outcomes are kept. */
	function unreadable(error: unknown): QueuedLine[] {
		log.warn("the input of a batch cannot be read further; another run follows", { batch: batch.id, error });
		stop = "unreadable";
		unread = error;
		return [];
	}

	return {
		/** Resolves when no line is in flight: with the reason for stopping, or undefined if every line has its outcome. */
		async run(): Promise<LineStopReason | undefined> {
			while (stop === undefined) {
				if (queue.isEmpty()) {
					if (inFlight.size === 0) return undefined;
					await changes.next();
					continue;
				}
				if (outcomes.pause() !== null) {
					await changes.next(REFUSED_LOOK_MS);
					continue;
				}
				const held = pace.heldMs();
				const count = wanted();
				if (count <= 0 || held > 0) {
					await changes.next(count > 0 ? held : undefined);
					continue;
				}
				waiting = new AbortController();
				const room = await carrier.room(batch.model, waiting.signal).catch(noRoom);
				if (room === 0 || stop !== undefined) continue;
				const taken = await queue.take(Math.min(count, room), () => stop !== undefined).catch(unreadable);
				if (taken.length > 0) await send(taken);
			}
			await Promise.all(inFlight);
			if (failure !== undefined) throw failure;
			return stop;
		},
		stop: stopWith,
		isStopped: () => stop !== undefined,
		unreadable: () => unread,
		/** Stops because outcomes cannot be stored; `run` rejects with `error`. */
		fail(error: Error): void {
			failure ??= error;
			stopWith("lost");
		},
		/** Aborts the lines in flight, which are then not charged. */
		cutOff: () => cutOff.abort(),
		giveBack: queue.giveBack,
		rest: queue.rest,
		pause: pace.pause,
		inFlight: () => inFlight.size,
	};
}

const UNCLAIMED = {
	code: "service_unavailable",
	message: "The service cannot record lines at the moment and sends none. The batch continues automatically.",
} as const;

/** Lets the sender sleep until the next event. */
function createChanges(clock: Clock) {
	let wake: () => void = () => {};
	return {
		tell: () => wake(),
		next: (withinMs = Number.POSITIVE_INFINITY): Promise<void> =>
			new Promise((resolve) => {
				const cancel = Number.isFinite(withinMs) ? clock.after(withinMs, resolve) : () => {};
				wake = () => {
					cancel();
					resolve();
				};
			}),
	};
}

export type LineWork = ReturnType<typeof createLineWork>;
