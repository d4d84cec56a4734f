import type { Clock } from "../base/clock.ts";

/** Approximate count of the last minute, from two fixed windows. The older one counts by its overlap. */
export interface RateWindow {
	sinceMs: number;
	count: number;
	countBefore: number;
}

/** Windows of requests and of their tokens. */
export interface RequestWindow extends RateWindow {
	tokens: number;
	tokensBefore: number;
}

export const tokenWindow = ({ sinceMs, tokens, tokensBefore }: RequestWindow): RateWindow => ({
	sinceMs,
	count: tokens,
	countBefore: tokensBefore,
});

export const WINDOW_MS = 60_000;

/**
 * Start of the window that contains `nowMs`, a minute of the wall clock. All instances use the same windows; otherwise
 * they would together admit more than the limit.
 */
export const windowStart = (nowMs: number, wallMs: number): number => nowMs - (wallMs % WINDOW_MS);

/** Largest expected difference between instances' clocks. */
const APART_MS_MAX = 1_000;

/**
 * Advances to the window of `nowMs`, and realigns the window if the wall clock was set. A window never starts in the
 * future, where the older window would count too much.
 */
export function advanceWindow(window: RequestWindow, nowMs: number, clock: Pick<Clock, "wallMs">): void {
	const windows = Math.floor((nowMs - window.sinceMs) / WINDOW_MS);
	if (windows <= 0) return;
	window.countBefore = windows === 1 ? window.count : 0;
	window.count = 0;
	window.tokensBefore = windows === 1 ? window.tokens : 0;
	window.tokens = 0;
	window.sinceMs += windows * WINDOW_MS;
	const startMs = windowStart(nowMs, clock.wallMs());
	const apartMs = Math.abs(window.sinceMs - startMs);
	// Realigns the window if the wall clock was set. A difference of about one window is no misalignment: near a window's
	// end, one clock may already be in the next window.
	if (Math.min(apartMs, WINDOW_MS - apartMs) > APART_MS_MAX) window.sinceMs = startMs;
}

/** Requests or tokens that count at `nowMs`, as a fraction. Call `advanceWindow` before. */
export function slidingCount({ sinceMs, count, countBefore }: RateWindow, nowMs: number): number {
	return count + countBefore * (1 - (nowMs - sinceMs) / WINDOW_MS);
}

/** Subtracts tokens from the window that counted them at `countedMs`. Call `advanceWindow` first. */
export function giveBackTokens(window: RequestWindow, amount: number, countedMs: number): void {
	// If the wall clock was set since, the amount may be in the other window.
	if (countedMs >= window.sinceMs) window.tokens = Math.max(0, window.tokens - amount);
	else if (countedMs >= window.sinceMs - WINDOW_MS) window.tokensBefore = Math.max(0, window.tokensBefore - amount);
}

/**
 * Time at which `amount` more fits under `perMinute` (at least `amount`) if nothing else arrives: as the older window,
 * or later the current one, loses weight.
 */
export function freeAtMs({ sinceMs, count, countBefore }: RateWindow, perMinute: number, amount = 1): number {
	const room = perMinute - amount;
	return count <= room
		? sinceMs + WINDOW_MS * (1 - (room - count) / countBefore)
		: sinceMs + WINDOW_MS + WINDOW_MS * (1 - room / count);
}

/** Time at which the count becomes zero if no request arrives; undefined if it is zero now. */
export function zeroAtMs({ sinceMs, count, countBefore }: RateWindow): number | undefined {
	// During the next window, the current one still counts in part.
	if (count > 0) return sinceMs + 2 * WINDOW_MS;
	return countBefore > 0 ? sinceMs + WINDOW_MS : undefined;
}
