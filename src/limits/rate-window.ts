import type { Clock } from "../base/clock.ts";

/** A minute of requests, of which the sliding count is approximated: two fixed windows, the older weighted by what still counts. */
export interface RateWindow {
	/** When the present window began. */
	sinceMs: number;
	count: number;
	countBefore: number;
}

export const WINDOW_MS = 60_000;

/**
 * When the window began that `nowMs` is in: with a minute of the wall clock, at all instances together. Where each began with
 * its own first request, what had faded at one was admitted at another, whose window had not ended, and so on around.
 */
export function windowStart(nowMs: number, wallMs: number): number {
	return nowMs - (wallMs % WINDOW_MS);
}

/** Instances may be so much apart: a clock differs from the other by fractions of a millisecond where nobody has set it. */
const APART_MS_MAX = 1_000;

/**
 * Moves on to the window that `nowMs` is in, which begins with the wall clock's minute anew where that clock was set since: instances
 * that met the key before and behind that would stay apart for as long as it is used. No window begins later than now, or the
 * one before would count for more than was in it.
 */
export function advance(window: RateWindow, nowMs: number, clock: Pick<Clock, "wallMs">): void {
	const windows = Math.floor((nowMs - window.sinceMs) / WINDOW_MS);
	if (windows <= 0) return;
	window.countBefore = windows === 1 ? window.count : 0;
	window.count = 0;
	window.sinceMs += windows * WINDOW_MS;
	const startMs = windowStart(nowMs, clock.wallMs());
	const apartMs = Math.abs(window.sinceMs - startMs);
	// A minute apart is none: at its very end the clocks are in two of them.
	if (Math.min(apartMs, WINDOW_MS - apartMs) > APART_MS_MAX) window.sinceMs = startMs;
}

/** Requests that count now, with a fraction. The window was advanced to `nowMs`. */
export function counted({ sinceMs, count, countBefore }: RateWindow, nowMs: number): number {
	return count + countBefore * (1 - (nowMs - sinceMs) / WINDOW_MS);
}

/** When one more request fits under `perMinute` (1 or more), if none comes meanwhile: the older window fades, or the present one does as the next. */
export function freeAtMs({ sinceMs, count, countBefore }: RateWindow, perMinute: number): number {
	const room = perMinute - 1;
	return count <= room
		? sinceMs + WINDOW_MS * (1 - (room - count) / countBefore)
		: sinceMs + WINDOW_MS + WINDOW_MS * (1 - room / count);
}

/** When nothing counts any more, if no request comes meanwhile. */
export function fadedAtMs({ sinceMs, count, countBefore }: RateWindow): number | undefined {
	// What is counted now weighs less and less through the window after this one.
	if (count > 0) return sinceMs + 2 * WINDOW_MS;
	return countBefore > 0 ? sinceMs + WINDOW_MS : undefined;
}
