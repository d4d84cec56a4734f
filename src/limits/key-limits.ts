import { assert } from "../base/assert.ts";
import type { Clock } from "../base/clock.ts";
import { Fault } from "../base/fault.ts";

/** What one key may do at once and a minute, on this instance. */
export interface KeyLimits {
	/** Counts a request in, or throws rate_limit_exceeded. Every `enter` needs one `leave` or one `withdraw`. */
	enter(keyId: string, requestsPerMinute: number | null, concurrencyMax: number | null): void;
	/** Throws as `enter` would, and counts nothing. */
	check(keyId: string, requestsPerMinute: number | null, concurrencyMax: number | null): void;
	leave(keyId: string): void;
	/** The request did not come about: in the same turn as its `enter`, as if that had not been. */
	withdraw(keyId: string): void;
	running(keyId: string): number;
	/** Where the key stands against its requests a minute. */
	standing(keyId: string, requestsPerMinute: number): RateStanding;
}

/** As of now, on this instance. */
export interface RateStanding {
	/** Requests a minute. */
	readonly limit: number;
	/** Requests that would be admitted now. */
	readonly remaining: number;
	/** Until all of the limit is free again, if no request comes meanwhile. */
	readonly resetMs: number;
}

interface Usage {
	running: number;
	/** The window of a minute that began at `sinceMs`, and the one before it. */
	sinceMs: number;
	count: number;
	countBefore: number;
}

const WINDOW_MS = 60_000;
/** Keys without a running request are forgotten when this many are known. */
const KEYS_MAX = 100_000;

/** A sliding minute is approximated from two fixed ones, the older weighted by how much of it still counts. */
export function createKeyLimits(deps: { clock: Clock }): KeyLimits {
	const usages = new Map<string, Usage>();

	function usageOf(keyId: string, nowMs: number): Usage {
		let usage = usages.get(keyId);
		if (!usage) {
			if (usages.size >= KEYS_MAX) forgetIdle();
			usage = { running: 0, sinceMs: nowMs, count: 0, countBefore: 0 };
			usages.set(keyId, usage);
		}
		const windows = Math.floor((nowMs - usage.sinceMs) / WINDOW_MS);
		if (windows > 0) {
			usage.countBefore = windows === 1 ? usage.count : 0;
			usage.count = 0;
			usage.sinceMs += windows * WINDOW_MS;
		}
		return usage;
	}

	function forgetIdle(): void {
		for (const [keyId, usage] of usages) if (usage.running === 0) usages.delete(keyId);
	}

	function running(keyId: string): Usage {
		const usage = usages.get(keyId);
		assert(usage !== undefined && usage.running > 0, "a request leaves once after it entered");
		return usage;
	}

	/** Throws rate_limit_exceeded if one more may not come now. */
	function assertRoom(
		usage: Usage,
		nowMs: number,
		requestsPerMinute: number | null,
		concurrencyMax: number | null,
	): void {
		if (concurrencyMax !== null && usage.running >= concurrencyMax) {
			throw new Fault("rate_limit_exceeded", `This key may run ${concurrencyMax} requests at once.`, {
				retryAfterS: 1,
			});
		}
		if (requestsPerMinute !== null) {
			const share = 1 - (nowMs - usage.sinceMs) / WINDOW_MS;
			if (usage.count + usage.countBefore * share > requestsPerMinute - 1) {
				throw new Fault("rate_limit_exceeded", `This key may send ${requestsPerMinute} requests a minute.`, {
					retryAfterS: Math.max(1, Math.ceil((freeAtMs(usage, requestsPerMinute) - nowMs) / 1000)),
				});
			}
		}
	}

	return {
		check(keyId, requestsPerMinute, concurrencyMax) {
			if (requestsPerMinute === null && concurrencyMax === null) return;
			const nowMs = deps.clock.monotonicMs();
			assertRoom(usageOf(keyId, nowMs), nowMs, requestsPerMinute, concurrencyMax);
		},
		enter(keyId, requestsPerMinute, concurrencyMax) {
			const nowMs = deps.clock.monotonicMs();
			const usage = usageOf(keyId, nowMs);
			assertRoom(usage, nowMs, requestsPerMinute, concurrencyMax);
			usage.count += 1;
			usage.running += 1;
		},
		leave(keyId) {
			running(keyId).running -= 1;
		},
		withdraw(keyId) {
			const usage = running(keyId);
			usage.running -= 1;
			usage.count -= 1;
		},
		running: (keyId) => usages.get(keyId)?.running ?? 0,
		standing(keyId, requestsPerMinute) {
			const nowMs = deps.clock.monotonicMs();
			const { sinceMs, count, countBefore } = usageOf(keyId, nowMs);
			const share = 1 - (nowMs - sinceMs) / WINDOW_MS;
			const remaining = Math.max(0, Math.floor(requestsPerMinute - count - countBefore * share));
			// What is counted now weighs less and less through the window after this one.
			const fadedMs = count > 0 ? 2 * WINDOW_MS : countBefore > 0 ? WINDOW_MS : 0;
			return { limit: requestsPerMinute, remaining, resetMs: fadedMs === 0 ? 0 : sinceMs + fadedMs - nowMs };
		},
	};
}

/** When one more request fits, if none comes meanwhile: the older window fades, or the present one does as the next. */
function freeAtMs({ sinceMs, count, countBefore }: Usage, requestsPerMinute: number): number {
	const room = requestsPerMinute - 1;
	return count <= room
		? sinceMs + WINDOW_MS * (1 - (room - count) / countBefore)
		: sinceMs + WINDOW_MS + WINDOW_MS * (1 - room / count);
}
