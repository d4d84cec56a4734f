import { assert } from "../base/assert.ts";
import type { Clock } from "../base/clock.ts";
import { Fault } from "../base/fault.ts";
import { advance, countAt, freeAtMs, type RateWindow, WINDOW_MS, windowStart, zeroAtMs } from "./rate-window.ts";
import type { LimitKind } from "./share-store.ts";
import { createShares, type Share, type SharesDeps } from "./shares.ts";

/**
 * Limits of a key's (or of a project's keys') concurrent requests and requests per minute, over all instances. Each
 * instance counts within its share; shares move to where requests arrive. Checks are synchronous; only a used-up share
 * needs Postgres.
 */
export interface KeyLimits {
	/**
	 * Counts a request. False if this instance's share is used up: call `draw`, then try again. Throws
	 * rate_limit_exceeded. Each `enter` that counted needs one `leave` or `withdraw`.
	 */
	enter(keyId: string, requestsPerMinute: number | null, concurrencyMax: number | null): boolean;
	/** Throws as `enter` would, without counting. */
	check(keyId: string, requestsPerMinute: number | null, concurrencyMax: number | null): void;
	/** Requests a larger share. Resolves even if none is free. Fault service_unavailable if Postgres does not answer. */
	draw(keyId: string, requestsPerMinute: number | null, concurrencyMax: number | null): Promise<void>;
	leave(keyId: string): void;
	/** Undoes an `enter` in the same turn of the event loop. */
	withdraw(keyId: string): void;
	/** Number of the key's running requests on this instance. */
	running(keyId: string): number;
	rateLimitState(keyId: string, requestsPerMinute: number): RateLimitState;
	/** Call it when another instance needs a share of this key: returns unused parts. */
	recall(keyId: string): void;
	/** Returns all unused parts of shares and stops. */
	stop(): Promise<void>;
}

/** State of a request limit as this instance knows it; without requests on other instances since its last draw. */
export interface RateLimitState {
	readonly limit: number;
	/** Requests that would be admitted now. */
	readonly remaining: number;
	/** Milliseconds until the whole limit is free, if no request comes. */
	readonly resetMs: number;
}

interface Usage extends RateWindow {
	running: number;
	rateShare: Share | undefined;
	runningShare: Share | undefined;
}

/** Most keys in memory. Above it each new key checks some others and drops those without running requests. */
const KEYS_MAX = 250_000;
const KEYS_A_KEY = 8;
const TICK_MS = 1_000;
/** Keys checked per tick. A key that was not used for two minutes is dropped, and its shares are returned. */
const KEYS_A_TICK = 4_000;
const CONTESTED_MS = 5_000;

export interface KeyLimitsDeps {
	readonly clock: Clock;
	/** Absent: this is the only instance and needs no shares. */
	readonly shared?: Omit<SharesDeps, "clock">;
}

export function createKeyLimits({ clock, shared }: KeyLimitsDeps): KeyLimits {
	const usages = new Map<string, Usage>();
	const shares = shared === undefined ? undefined : createShares({ ...shared, clock });
	let sweep = usages.entries();
	let cancelTick = shares === undefined ? () => {} : clock.after(TICK_MS, tick);

	function usageOf(keyId: string, nowMs: number): Usage {
		let usage = usages.get(keyId);
		if (!usage) {
			if (usages.size >= KEYS_MAX) forgetSome(KEYS_A_KEY, nowMs, true);
			const sinceMs = windowStart(nowMs, clock.wallMs());
			usage = { running: 0, sinceMs, count: 0, countBefore: 0, rateShare: undefined, runningShare: undefined };
			usages.set(keyId, usage);
		}
		advance(usage, nowMs, clock);
		return usage;
	}

	/** Drops keys that are not in use; checks the next `looks` keys. */
	function forgetSome(looks: number, nowMs: number, evenCounted: boolean): void {
		for (let looked = 0; looked < looks; looked++) {
			const { done, value } = sweep.next();
			if (done) {
				sweep = usages.entries();
				return;
			}
			const [keyId, usage] = value;
			advance(usage, nowMs, clock);
			const isIdle = usage.running === 0 && !isDrawn(usage);
			if (isIdle && (evenCounted || countAt(usage, nowMs) === 0)) forget(keyId, usage);
		}
	}

	function forget(keyId: string, usage: Usage): void {
		usages.delete(keyId);
		for (const share of [usage.rateShare, usage.runningShare]) if (share) shares?.release(share);
	}

	function tick(): void {
		cancelTick = clock.after(TICK_MS, tick);
		forgetSome(KEYS_A_TICK, clock.monotonicMs(), false);
		shares?.tick();
	}

	function shareOf(keyId: string, usage: Usage, kind: LimitKind, limit: number): Share | undefined {
		if (shares === undefined) return undefined;
		const member = kind === "rate" ? "rateShare" : "runningShare";
		usage[member] ??= shares.obtain(keyId, kind, () => {
			if (kind === "running") return usage.running;
			const nowMs = clock.monotonicMs();
			advance(usage, nowMs, clock);
			return Math.ceil(countAt(usage, nowMs));
		});
		shares.limitTo(usage[member], limit);
		return usage[member];
	}

	function running(keyId: string): Usage {
		const usage = usages.get(keyId);
		assert(usage !== undefined && usage.running > 0, "a request leaves once after it entered");
		return usage;
	}

	const isUsedUp = (usage: Usage, kind: LimitKind, amount: number, nowMs: number) =>
		kind === "running" ? usage.running >= amount : countAt(usage, nowMs) > amount - 1;

	/** True if one more request fits. False if a share must be drawn. Throws rate_limit_exceeded if that cannot help. */
	function hasRoom(keyId: string, usage: Usage, kind: LimitKind, limit: number | null, nowMs: number): boolean {
		if (limit === null) return true;
		const share = shareOf(keyId, usage, kind, limit);
		const isDry = share !== undefined && share.dryUntilMs > nowMs;
		if (isUsedUp(usage, kind, limit, nowMs) || (isDry && isUsedUp(usage, kind, share.amount, nowMs)))
			throw refusal(keyId, usage, kind, limit, share, nowMs);
		return share === undefined || !isUsedUp(usage, kind, share.amount, nowMs);
	}

	return {
		check(keyId, requestsPerMinute, concurrencyMax) {
			if (requestsPerMinute === null && concurrencyMax === null) return;
			const nowMs = clock.monotonicMs();
			const usage = usageOf(keyId, nowMs);
			hasRoom(keyId, usage, "running", concurrencyMax, nowMs);
			hasRoom(keyId, usage, "rate", requestsPerMinute, nowMs);
		},
		enter(keyId, requestsPerMinute, concurrencyMax) {
			const nowMs = clock.monotonicMs();
			const usage = usageOf(keyId, nowMs);
			const mayRun = hasRoom(keyId, usage, "running", concurrencyMax, nowMs);
			if (!hasRoom(keyId, usage, "rate", requestsPerMinute, nowMs) || !mayRun) return false;
			usage.count += 1;
			usage.running += 1;
			return true;
		},
		async draw(keyId, requestsPerMinute, concurrencyMax) {
			const nowMs = clock.monotonicMs();
			const usage = usageOf(keyId, nowMs);
			const limits = [["running", concurrencyMax] as const, ["rate", requestsPerMinute] as const];
			for (const [kind, limit] of limits) {
				const share = limit === null ? undefined : shareOf(keyId, usage, kind, limit);
				if (share && isUsedUp(usage, kind, share.amount, clock.monotonicMs())) await shares?.draw(share);
			}
		},
		leave(keyId) {
			const usage = running(keyId);
			usage.running -= 1;
			const share = usage.runningShare;
			if (share !== undefined && share.contestedUntilMs > clock.monotonicMs()) shares?.giveBack(share);
		},
		withdraw(keyId) {
			const usage = running(keyId);
			usage.running -= 1;
			usage.count -= 1;
		},
		running: (keyId) => usages.get(keyId)?.running ?? 0,
		rateLimitState(keyId, requestsPerMinute) {
			const nowMs = clock.monotonicMs();
			const usage = usageOf(keyId, nowMs);
			const share = usage.rateShare;
			const most = share === undefined ? requestsPerMinute : Math.min(requestsPerMinute, share.amount + share.free);
			const remaining = Math.max(0, Math.floor(most - countAt(usage, nowMs)));
			return { limit: requestsPerMinute, remaining, resetMs: (zeroAtMs(usage) ?? nowMs) - nowMs };
		},
		recall(keyId) {
			const usage = usages.get(keyId);
			if (usage === undefined) return;
			for (const share of [usage.rateShare, usage.runningShare]) {
				if (share === undefined || share.drawing !== undefined) continue;
				share.contestedUntilMs = clock.monotonicMs() + CONTESTED_MS;
				shares?.giveBack(share);
			}
		},
		async stop() {
			cancelTick();
			for (const { rateShare, runningShare } of usages.values()) {
				for (const share of [rateShare, runningShare]) if (share) shares?.giveBack(share);
			}
			await shares?.sent();
		},
	};
}

function refusal(
	id: string,
	usage: Usage,
	kind: LimitKind,
	limit: number,
	share: Share | undefined,
	nowMs: number,
): Fault {
	const who = id.startsWith("proj_") ? "The project of this key" : "This key";
	if (kind === "running")
		return new Fault("rate_limit_exceeded", "{who} may run {count} requests at once.", {
			values: { who, count: limit },
			retryAfterS: 1,
		});
	return new Fault("rate_limit_exceeded", "{who} may send {count} requests a minute.", {
		values: { who, count: limit },
		retryAfterS: Math.max(1, Math.ceil((comeBackAtMs(usage, limit, share, nowMs) - nowMs) / 1000)),
	});
}

/** When a retry may succeed, as counts here or on other instances decrease. Of the others only the rate is known. */
function comeBackAtMs(usage: Usage, limit: number, share: Share | undefined, nowMs: number): number {
	const isOurs = isAbove(usage, limit, nowMs);
	if (isOurs) return freeAtMs(usage, limit);
	const paceMs = nowMs + WINDOW_MS / limit;
	return share !== undefined && share.amount >= 1 ? Math.min(freeAtMs(usage, share.amount), paceMs) : paceMs;
}

const isDrawn = ({ rateShare, runningShare }: Usage) =>
	rateShare?.drawing !== undefined || runningShare?.drawing !== undefined;

const isAbove = (usage: Usage, limit: number, nowMs: number) => countAt(usage, nowMs) > limit - 1;
