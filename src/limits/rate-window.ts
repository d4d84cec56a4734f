import type { Clock } from "../base/clock.ts";

/** Approximate sliding count of the last minute, from two fixed windows of which the older counts partly. */
export interface RateWindow {
	sinceMs: number;
	count: number;
	countBefore: number;
}

export const WINDOW_MS = 60_000;

/**
 * Start of the window of `nowMs`: a minute of the wall clock. It is the same on all instances, which would otherwise
 * together admit more than the limit.
 */
export function windowStart(nowMs: number, wallMs: number): number {
	return nowMs - (wallMs % WINDOW_MS);
}

/** Largest difference between instances' clocks that counts as normal. */
const APART_MS_MAX = 1_000;

/**
 * Advances to the window of `nowMs`, and realigns the window after the wall clock was set. A window never starts in the
 * future, since the older one would then count too much.
 */
export function advance(window: RateWindow, nowMs: number, clock: Pick<Clock, "wallMs">): void {
	const windows = Math.floor((nowMs - window.sinceMs) / WINDOW_MS);
	if (windows <= 0) return;
	window.countBefore = windows === 1 ? window.count : 0;
	window.count = 0;
	window.sinceMs += windows * WINDOW_MS;
	const startMs = windowStart(nowMs, clock.wallMs());
	const apartMs = Math.abs(window.sinceMs - startMs);
	// A distance of exactly a minute counts as aligned: clocks at a window's end may be in different windows.
	if (Math.min(apartMs, WINDOW_MS - apartMs) > APART_MS_MAX) window.sinceMs = startMs;
}

/** Requests that count now, a fraction. Call `advance` first. */
export function countAt({ sinceMs, count, countBefore }: RateWindow, nowMs: number): number {
	return count + countBefore * (1 - (nowMs - sinceMs) / WINDOW_MS);
}

/**
 * When one more request fits under `perMinute` (1 or more) if none comes: as the older window decays, or later the
 * current one.
 */
export function freeAtMs({ sinceMs, count, countBefore }: RateWindow, perMinute: number): number {
	const room = perMinute - 1;
	return count <= room
		? sinceMs + WINDOW_MS * (1 - (room - count) / countBefore)
		: sinceMs + WINDOW_MS + WINDOW_MS * (1 - room / count);
}

/** When the count becomes zero if no request comes; undefined if it is zero. */
export function zeroAtMs({ sinceMs, count, countBefore }: RateWindow): number | undefined {
	// The current window still counts, less and less, during the next one.
	if (count > 0) return sinceMs + 2 * WINDOW_MS;
	return countBefore > 0 ? sinceMs + WINDOW_MS : undefined;
}
