import type { Clock } from "../base/clock.ts";
import { newUuid } from "../base/id.ts";
import type { Log } from "../base/log.ts";
import { nextTurn } from "../base/next-turn.ts";
import type { RunSpool } from "./answer-spool.ts";
import type { BatchBooks } from "./batch-books.ts";
import type { BatchLine } from "./batch-line.ts";
import { customIdOf, readLine } from "./batch-line.ts";
import type { BatchPause, BatchRecord, BatchUsage } from "./batch-record.ts";
import type { OpenLine } from "./line-source.ts";
import { answeredLine, interrupted, unansweredLine } from "./line-text.ts";
import { errorOf, verdictOf } from "./line-verdict.ts";
import type { Outcomes } from "./outcomes.ts";

/** A line on its way. */
export interface LineRequest {
	readonly batchId: string;
	readonly requestUuid: string;
	/** The id of its model. */
	readonly model: string;
	readonly endpoint: string;
	readonly keyDigest: string;
	/** JSON. */
	readonly body: string;
	readonly signal: AbortSignal;
}

/** Who carries lines out. */
export interface Carrier {
	/** By the road of every request. Never rejects. */
	answer(line: LineRequest): Promise<Response>;
	/** What a request used, once, after its answer; undefined if it was not settled here. */
	usageOf(requestUuid: string): BatchUsage | undefined;
	/** How many lines of the model others leave room for now; at least one, else it waits, until `signal` aborts. */
	room(model: string, signal: AbortSignal): Promise<number>;
}

/** Why no further line is sent. */
export type Stop = "cancelled" | "expired" | "key" | "shutdown" | "lost";

/** Lines of one batch that are under way at once, in one instance. */
const IN_FLIGHT_MAX = 32;
/** Text of lines that are under way or wait for another attempt, and of outcomes that are not sealed. */
const TEXT_CHARS_MAX = 32 * 1024 * 1024;
/** Attempts of a line that model servers fail on; the last failure is its outcome. */
const FAILURES_MAX = 3;
const CLAIM_RETRY_MS = 500;
const HOLD_MS_MIN = 250;
const HOLD_MS_MAX = 15_000;

interface Work extends OpenLine {
	readonly read: BatchLine;
	/** The request that carried it last; null before the first, and once it was given back in the books. */
	was: string | null;
	/** The request that it was claimed for last, if nobody knows whether it was; else null. */
	claimed: string | null;
	failures: number;
}

/** Sends the lines of one batch, as many at once as there is room and credit for. */
export function createLineWork(
	deps: { books: BatchBooks; carrier: Carrier; outcomes: Outcomes; spool: RunSpool; clock: Clock; log: Log },
	batch: BatchRecord & { readonly keyDigest: string; readonly model: string },
	lines: AsyncGenerator<OpenLine, void>,
) {
	const { books, carrier, outcomes, spool, clock, log } = deps;
	const inFlight = new Map<number, Promise<void>>();
	const again: Work[] = [];
	const cutOff = new AbortController();
	let stop: Stop | undefined;
	let failure: Error | undefined;
	let exhausted = false;
	let chars = 0;
	/** Lines that may be under way: fewer while what they ask for does not fit. */
	let window = IN_FLIGHT_MAX;
	let holdMs = HOLD_MS_MIN;
	let holdUntilMs = 0;
	let pause: BatchPause | null = null;
	let wake: () => void = () => {};
	/** Aborts what waits for room, when there is something else to be done. */
	let waiting = new AbortController();

	function changed(): void {
		wake();
		waiting.abort();
	}

	function nextChange(withinMs = Number.POSITIVE_INFINITY): Promise<void> {
		return new Promise((resolve) => {
			const cancel = Number.isFinite(withinMs) ? clock.after(withinMs, resolve) : () => {};
			wake = () => {
				cancel();
				resolve();
			};
		});
	}

	/** The next line to be sent; undefined if there is none at the moment. What needs no sending gets its outcome here. */
	async function next(): Promise<Work | undefined> {
		const before = again.shift();
		if (before !== undefined) return before;
		while (!exhausted && stop === undefined) {
			const { value, done } = await lines.next();
			if (done === true || value === undefined) {
				exhausted = true;
				return undefined;
			}
			if (value.cut !== undefined) {
				const { line, cut } = value;
				const text = unansweredLine(customIdOf(value.text), interrupted(cut), cut);
				outcomes.add({ line, id: cut, file: "error", text, usage: undefined });
				continue;
			}
			const read = await readLine(value.text, batch.endpoint);
			if ("code" in read) throw new Error(`line ${value.line} of ${batch.id} is not what was checked`);
			chars += value.text.length;
			return { ...value, read, was: null, claimed: null, failures: 0 };
		}
		return undefined;
	}

	async function take(count: number): Promise<Work[]> {
		const taken: Work[] = [];
		while (taken.length < count && chars < TEXT_CHARS_MAX) {
			const work = await next();
			if (work === undefined) break;
			taken.push(work);
		}
		return taken;
	}

	/** One statement claims all of them; only then are they sent, and others have their turn between any two. */
	async function send(taken: readonly Work[]): Promise<void> {
		const claims = taken.map((work) => ({ line: work.line, id: work.claimed ?? newUuid(), was: work.was }));
		spool.claims(claims);
		let granted: ReadonlySet<number>;
		try {
			granted = await books.claim(batch.id, batch.run, claims);
		} catch (error) {
			log.info("lines of a batch could not be claimed; trying again", { batch: batch.id, error });
			// It may have been carried out, or not: the same once more finds either.
			for (const [at, work] of taken.entries()) again.push({ ...work, claimed: claims[at]?.id ?? null });
			holdUntilMs = clock.monotonicMs() + CLAIM_RETRY_MS;
			return;
		}
		if (granted.size < taken.length) changed();
		for (const [at, work] of taken.entries()) {
			if (at > 0) await nextTurn();
			const id = claims[at]?.id ?? "";
			const isGranted = granted.has(work.line);
			if (isGranted && stop === undefined && spool.sends(id)) inFlight.set(work.line, carry(work, id));
			// The batch is to end, or another run has it: the next look at the books says which.
			else tryAgain(work, id, isGranted ? id : work.was);
		}
		if (granted.size === 0) hold();
	}

	/** What this request was charged is nothing, and no more comes of it. */
	function tryAgain(work: Work, id: string, was: string | null = id): void {
		spool.add({ line: work.line, id, answer: undefined });
		again.push({ ...work, was, claimed: null });
	}

	async function carry(work: Work, id: string): Promise<void> {
		const { line, read } = work;
		try {
			const response = await carrier.answer({
				batchId: batch.id,
				requestUuid: id,
				model: batch.model,
				endpoint: batch.endpoint,
				keyDigest: batch.keyDigest,
				body: JSON.stringify(read.body),
				signal: cutOff.signal,
			});
			judge(work, id, response.status, await response.text());
		} catch (error) {
			// Not to be sent again: nobody knows how far it got.
			log.error("a line of a batch was lost", { batch: batch.id, line, error });
			const text = unansweredLine(read.customId, interrupted(id), id);
			settle(work, { line, id, file: "error", text, usage: carrier.usageOf(id) });
		} finally {
			inFlight.delete(line);
			changed();
		}
	}

	function judge(work: Work, id: string, status: number, text: string): void {
		const { line, read } = work;
		const error = status === 200 ? undefined : errorOf(text);
		const verdict = verdictOf(status, error?.code ?? "");
		const usage = carrier.usageOf(id);
		if (verdict === "final" || error === undefined) {
			const file = status === 200 ? "output" : "error";
			settle(work, { line, id, file, text: answeredLine(read.customId, id, status, text), usage });
			went();
			return;
		}
		if (cutOff.signal.aborted && verdict === "failed") {
			tryAgain(work, id);
			return;
		}
		if (verdict === "failed" && work.failures + 1 >= FAILURES_MAX) {
			settle(work, { line, id, file: "error", text: answeredLine(read.customId, id, status, text), usage });
			return;
		}
		tryAgain({ ...work, failures: work.failures + (verdict === "failed" ? 1 : 0) }, id);
		if (verdict === "key") stopWith("key");
		else refused(error);
	}

	function settle(work: Work, outcome: Parameters<Outcomes["add"]>[0]): void {
		chars -= work.text.length;
		outcomes.add(outcome);
	}

	function went(): void {
		pause = null;
		holdMs = HOLD_MS_MIN;
		window = Math.min(window + 1, IN_FLIGHT_MAX);
	}

	/** Fewer at once; and if even a single one does not fit, the batch waits and says why. */
	function refused({ code, message }: { code: string; message: string }): void {
		const others = inFlight.size - 1;
		window = Math.max(1, Math.floor(others / 2));
		hold();
		if (others > 0) return;
		pause = pause?.code === code ? pause : { code, message, sinceMs: clock.wallMs() };
	}

	function hold(): void {
		holdUntilMs = clock.monotonicMs() + holdMs;
		holdMs = Math.min(holdMs * 2, HOLD_MS_MAX);
	}

	function stopWith(reason: Stop): void {
		stop ??= reason;
		changed();
	}

	/** How many lines could be sent now, but for the room that others leave. */
	function wanted(): number {
		if (outcomes.bytes() + chars >= TEXT_CHARS_MAX && inFlight.size > 0) return 0;
		return window - inFlight.size;
	}

	return {
		/** Resolves with why it ended, once nothing is under way; undefined if every line has its outcome. */
		async run(): Promise<Stop | undefined> {
			while (stop === undefined) {
				if (exhausted && again.length === 0) {
					if (inFlight.size === 0) return undefined;
					await nextChange();
					continue;
				}
				const held = holdUntilMs - clock.monotonicMs();
				const count = wanted();
				if (count <= 0 || held > 0) {
					await nextChange(count > 0 ? held : undefined);
					continue;
				}
				waiting = new AbortController();
				const room = await carrier.room(batch.model, waiting.signal).catch(() => 0);
				if (room === 0 || stop !== undefined) continue;
				const taken = await take(Math.min(count, room));
				if (taken.length > 0) await send(taken);
			}
			await Promise.all(inFlight.values());
			if (failure !== undefined) throw failure;
			return stop;
		},
		stop: stopWith,
		/** Its outcomes cannot be kept: `run` rejects with this. */
		fail(error: Error): void {
			failure ??= error;
			stopWith("lost");
		},
		/** Hangs up on what is under way; nothing of it is charged. */
		cutOff: () => cutOff.abort(),
		/** Writes down which lines are not under way any more, so that a crash does not take them for cut off. */
		giveBack(): void {
			for (const work of again) {
				for (const id of [work.was, work.claimed]) if (id !== null) outcomes.release(work.line, id);
				work.was = null;
				work.claimed = null;
			}
		},
		/** What is left, one line after the other, each without its outcome. After `run`. */
		async *rest(): AsyncGenerator<{ line: number; id: string; customId: string; cut: boolean }, void> {
			for (const { line, read } of again.splice(0)) yield { line, id: newUuid(), customId: read.customId, cut: false };
			for await (const { line, text, cut } of lines)
				yield { line, id: cut ?? newUuid(), customId: customIdOf(text), cut: cut !== undefined };
		},
		pause: () => pause,
		inFlight: () => inFlight.size,
	};
}

export type LineWork = ReturnType<typeof createLineWork>;
