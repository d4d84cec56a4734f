import { expect, test } from "bun:test";
import { silentLog } from "../../src/base/log.ts";
import type { BatchBooks } from "../../src/batch/batch-books.ts";
import type { BatchRecord } from "../../src/batch/batch-record.ts";
import type { LineStopReason, LineWork } from "../../src/batch/line-work.ts";
import type { OutcomeWriter } from "../../src/batch/outcomes.ts";
import { startBatchTick } from "../../src/batch/pulse.ts";
import { ZERO_USD } from "../../src/money/nano-usd.ts";
import { createManualClock } from "../support/upstream-clock.ts";

const MINUTE_MS = 60_000;

/** A running batch with a line that never ends. */
function running(
	state: BatchRecord["state"] = "in_progress",
	{
		leftMs = MINUTE_MS,
		isPast = false,
		...stuck
	}: Partial<Pick<LineWork, "inFlight" | "pause">> & {
		leftMs?: number;
		isPast?: boolean;
		othersWait?: () => Promise<boolean>;
	} = {},
) {
	const clock = createManualClock();
	let stop: LineStopReason | undefined;
	let isCutOff = false;
	const work = {
		stop(reason: LineStopReason) {
			stop ??= reason;
		},
		isStopped: () => stop !== undefined,
		cutOff() {
			isCutOff = true;
		},
		giveBack() {},
		pause: stuck.pause ?? (() => null),
		inFlight: stuck.inFlight ?? (() => 1),
	} as Partial<LineWork> as LineWork;
	const counts = { completed: 0, failed: 0, promptTokens: 0, cachedTokens: 0, completionTokens: 0, reasoningTokens: 0 };
	const outcomes = {
		counts: () => ({ ...counts, chargedNanoUsd: ZERO_USD }),
		bytes: () => 0,
		parts: () => 0,
		pause: () => null,
		flush: async () => {},
	};
	const batch = { id: "batch_1", run: 1, state, expiresAtMs: clock.wallMs() + leftMs } as BatchRecord;
	const books = { isPast: true };
	const pulse = startBatchTick(
		{
			books: { tick: async () => ({ ...batch, ...books }) } as Partial<BatchBooks> as BatchBooks,
			clock,
			log: silentLog,
		},
		{ ...batch, isPast },
		{ work, outcomes: outcomes as Partial<OutcomeWriter> as OutcomeWriter, signal: new AbortController().signal },
		{ graceMs: 1_000, othersWait: stuck.othersWait ?? (async () => false) },
	);
	return { clock, pulse, work, books, stop: () => stop, isCutOff: () => isCutOff };
}

for (const reason of ["expired", "cancelled", "key"] as const) {
	test(`lines sent before a batch ended (${reason}) have ten more minutes to be answered`, async () => {
		const { clock, pulse, work, stop, isCutOff } = running(reason === "cancelled" ? "cancelling" : "in_progress");
		if (reason === "key") work.stop("key");
		clock.advance(MINUTE_MS);
		await Bun.sleep(0);
		expect(stop()).toBe(reason);
		clock.advance(8 * MINUTE_MS);
		expect(isCutOff()).toBe(false);
		clock.advance(3 * MINUTE_MS);
		expect(isCutOff()).toBe(true);
		pulse.stop();
		expect(clock.pending()).toBe(0);
	});
}

test("a batch expires only once both clocks have passed its time limit", async () => {
	const { clock, pulse, books, stop } = running();
	books.isPast = false;
	clock.advance(MINUTE_MS);
	await Bun.sleep(0);
	expect(stop()).toBeUndefined();
	books.isPast = true;
	clock.advance(1_000);
	await Bun.sleep(0);
	expect(stop()).toBe("expired");
	pulse.stop();
});

test("a batch that starts after its time limit by both clocks sends nothing", () => {
	for (const isPast of [true, false]) {
		const { pulse, stop } = running("in_progress", { leftMs: -24 * 60 * MINUTE_MS, isPast });
		expect({ isPast, stop: stop() }).toEqual({ isPast, stop: isPast ? "expired" : undefined });
		pulse.stop();
	}
});

test("a paused batch that makes no progress for a minute yields to a waiting batch", async () => {
	const pause = () => ({ code: "insufficient_quota", message: "", sinceMs: createManualClock().wallMs() });
	const day = { leftMs: 24 * 60 * MINUTE_MS };
	for (const [until, options] of [
		["aside", { pause, inFlight: () => 0, othersWait: async () => true }],
		[undefined, { pause, inFlight: () => 0 }],
		[undefined, { pause, othersWait: async () => true }],
		[undefined, { inFlight: () => 0, othersWait: async () => true }],
	] as const) {
		const { clock, pulse, stop } = running("in_progress", { ...day, ...options });
		const beganMs = clock.monotonicMs();
		for (const [second, expected] of [
			[50, undefined],
			[61, until],
		] as const) {
			while (clock.monotonicMs() < beganMs + second * 1_000) {
				clock.advance(1_000);
				for (let turns = 0; turns < 5; turns += 1) await Promise.resolve();
			}
			expect(stop()).toBe(expected);
		}
		pulse.stop();
	}
});
