import type { Clock } from "../base/clock.ts";

/** Sliding count of a minute's requests, approximated by two fixed windows: the older one counts in part. */
export interface RateWindow {
	sinceMs: number;
	count: number;
	countBefore: number;
}

export const WINDOW_MS = 60_000;

/**
 * Start of the window that `nowMs` is in: a minute of the wall clock, the same on all instances, which would otherwise
 * together admit more than the limit.
 */
export function windowStart(nowMs: number, wallMs: number): number {
	return nowMs - (wallMs % WINDOW_MS);
}

/** Instances' clocks differ by this much at most, unless one is set. */
const APART_MS_MAX = 1_000;

/**
 * Advances to the window of `nowMs` and realigns it after the wall clock was set, or instances would stay apart while
 * the key is used. A window never starts in the future, or the older one would count too much.
 */
export function advance(window: RateWindow, nowMs: number, clock: Pick<Clock, "wallMs">): void {
	const windows = Math.floor((nowMs - window.sinceMs) / WINDOW_MS);
	if (windows <= 0) return;
	window.countBefore = windows === 1 ? window.count : 0;
	window.count = 0;
	window.sinceMs += windows * WINDOW_MS;
	const startMs = windowStart(nowMs, clock.wallMs());
	const apartMs = Math.abs(window.sinceMs - startMs);
	// Exactly a minute apart counts as aligned: at its end the clocks may be in different windows.
	if (Math.min(apartMs, WINDOW_MS - apartMs) > APART_MS_MAX) window.sinceMs = startMs;
}

/** Requests that count now, as a fraction. The window must have been advanced to `nowMs`. */
export function counted({ sinceMs, count, countBefore }: RateWindow, nowMs: number): number {
	return count + countBefore * (1 - (nowMs - sinceMs) / WINDOW_MS);
}

/**
 * When one more request fits under `perMinute` (1 or more), if none comes: as the older window decays, or the current
 * one does as the next.
 */
export function freeAtMs({ sinceMs, count, countBefore }: RateWindow, perMinute: number): number {
	const room = perMinute - 1;
	return count <= room
		? sinceMs + WINDOW_MS * (1 - (room - count) / countBefore)
		: sinceMs + WINDOW_MS + WINDOW_MS * (1 - room / count);
}

/** When the count reaches zero, if no request comes. */
export function fadedAtMs({ sinceMs, count, countBefore }: RateWindow): number | undefined {
	// The current window still counts, less and less, during the next one.
	if (count > 0) return sinceMs + 2 * WINDOW_MS;
	return countBefore > 0 ? sinceMs + WINDOW_MS : undefined;
}
