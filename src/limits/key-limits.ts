import { assert } from "../base/assert.ts";
import type { Clock } from "../base/clock.ts";
import { Fault } from "../base/fault.ts";
import {
	advanceWindow,
	freeAtMs,
	giveBackTokens,
	type RateWindow,
	type RequestWindow,
	slidingCount,
	tokenWindow,
	WINDOW_MS,
	windowStart,
	zeroAtMs,
} from "./rate-window.ts";
import type { LimitKind } from "./share-store.ts";
import { createShares, type Share, type SharesDeps } from "./shares.ts";

/** Limits of requests with a key, or of a project or account; null: no limit. */
export interface RequestLimits {
	readonly requestsPerMinute: number | null;
	readonly concurrencyMax: number | null;
	/** Limit of prompt and completion tokens together. */
	readonly tokensPerMinute: number | null;
}

export type KeyLimits = ReturnType<typeof createKeyLimits>;
type WindowKind = Exclude<LimitKind, "running">;

/** State of a limit per minute as this instance knows it, without what others used since its last draw. */
export interface RateLimitState {
	/** The limit: requests or tokens per minute. */
	readonly limit: number;
	/** Requests or tokens that would be admitted now. */
	readonly remaining: number;
	/** Milliseconds until the whole limit is available, if no request arrives. */
	readonly resetMs: number;
}

interface Usage extends RequestWindow {
	running: number;
	rateShare: Share | undefined;
	runningShare: Share | undefined;
	tokensShare: Share | undefined;
}

const SHARE_OF = { rate: "rateShare", running: "runningShare", tokens: "tokensShare" } as const;
const sharesOf = (usage: Usage) => [usage.rateShare, usage.runningShare, usage.tokensShare];

/** Maximum keys in memory. Beyond it, each new key checks some others and drops those without running requests. */
const KEYS_MAX = 250_000;
const KEYS_A_KEY = 8;
const TICK_MS = 1_000;
/** Keys checked per tick. A key that was not used for two minutes is dropped and its shares are returned. */
const KEYS_A_TICK = 4_000;
const CONTESTED_MS = 5_000;

/**
 * Limits of concurrent requests, and of requests and tokens per minute, across all instances. A key, a project, an
 * account, or an account with one model has such limits. Each instance counts within its share; shares move to where
 * requests arrive. Checks are synchronous; only a used-up share must be drawn from Postgres. `shared` is absent if this
 * is the only instance.
 */
export function createKeyLimits({ clock, shared }: { clock: Clock; shared?: Omit<SharesDeps, "clock"> }) {
	const usages = new Map<string, Usage>();
	const shares = shared === undefined ? undefined : createShares({ ...shared, clock });
	let sweep = usages.entries();
	let cancelTick = shares === undefined ? () => {} : clock.after(TICK_MS, tick);

	function usageOf(keyId: string, nowMs: number): Usage {
		let usage = usages.get(keyId);
		if (!usage) {
			if (usages.size >= KEYS_MAX) forgetSome(KEYS_A_KEY, nowMs, true);
			const sinceMs = windowStart(nowMs, clock.wallMs());
			const counts = { running: 0, count: 0, countBefore: 0, tokens: 0, tokensBefore: 0 };
			usage = { sinceMs, ...counts, rateShare: undefined, runningShare: undefined, tokensShare: undefined };
			usages.set(keyId, usage);
		}
		advanceWindow(usage, nowMs, clock);
		return usage;
	}

	/** Checks the next `looks` keys and drops those that are not in use. */
	function forgetSome(looks: number, nowMs: number, evenCounted: boolean): void {
		for (let looked = 0; looked < looks; looked++) {
			const { done, value } = sweep.next();
			if (done) {
				sweep = usages.entries();
				return;
			}
			const [keyId, usage] = value;
			advanceWindow(usage, nowMs, clock);
			const isIdle = usage.running === 0 && !isDrawn(usage);
			if (isIdle && (evenCounted || slidingCount(usage, nowMs) === 0)) forget(keyId, usage);
		}
	}

	function forget(keyId: string, usage: Usage): void {
		usages.delete(keyId);
		for (const share of sharesOf(usage)) if (share) shares?.release(share);
	}

	function tick(): void {
		cancelTick = clock.after(TICK_MS, tick);
		forgetSome(KEYS_A_TICK, clock.monotonicMs(), false);
		shares?.tick();
	}

	function shareOf(keyId: string, usage: Usage, kind: LimitKind, limit: number): Share | undefined {
		if (shares === undefined) return undefined;
		const member = SHARE_OF[kind];
		usage[member] ??= shares.obtain(keyId, kind, () => {
			const nowMs = clock.monotonicMs();
			advanceWindow(usage, nowMs, clock);
			return Math.ceil(countOf(usage, kind, nowMs));
		});
		shares.limitTo(usage[member], limit);
		return usage[member];
	}

	function giveBackContested(share: Share | undefined, nowMs: number): void {
		if (share !== undefined && share.contestedUntilMs > nowMs) shares?.giveBack(share);
	}

	function running(keyId: string): Usage {
		const usage = usages.get(keyId);
		assert(usage !== undefined && usage.running > 0, "a request leaves once after it entered");
		return usage;
	}

	/** Returns false if a share must be drawn first. Throws rate_limit_exceeded if a draw cannot help. */
	function hasRoom(
		keyId: string,
		usage: Usage,
		kind: LimitKind,
		limit: number | null,
		size: number,
		nowMs: number,
	): boolean {
		if (limit === null) return true;
		const share = shareOf(keyId, usage, kind, limit);
		const isDry = share !== undefined && share.dryUntilMs > nowMs && size >= share.drySize;
		const count = countOf(usage, kind, nowMs);
		if (count > limit - size || (isDry && count > share.amount - size))
			throw refusal(keyId, usage, kind, limit, size, share, nowMs);
		return share === undefined || count <= share.amount - size;
	}

	return {
		/** Throws if `enter` would throw for a request of one token. Counts nothing. */
		check(keyId: string, { requestsPerMinute, concurrencyMax, tokensPerMinute }: RequestLimits) {
			if (requestsPerMinute === null && concurrencyMax === null && tokensPerMinute === null) return;
			const nowMs = clock.monotonicMs();
			const usage = usageOf(keyId, nowMs);
			hasRoom(keyId, usage, "running", concurrencyMax, 1, nowMs);
			hasRoom(keyId, usage, "rate", requestsPerMinute, 1, nowMs);
			hasRoom(keyId, usage, "tokens", tokensPerMinute, 1, nowMs);
		},
		/**
		 * Counts a request and its tokens. Returns false if this instance's share is used up: then `draw` and call it
		 * again. Throws rate_limit_exceeded. Each counted `enter` needs one `leave` or `withdraw`. `isAgain`: only tokens
		 * may refuse it.
		 */
		enter(keyId: string, limits: RequestLimits, tokens: number, isAgain = false): boolean {
			const { requestsPerMinute, concurrencyMax, tokensPerMinute } = limits;
			const nowMs = clock.monotonicMs();
			const usage = usageOf(keyId, nowMs);
			// Checks all three limits even if one returns false, because `hasRoom` throws if a request must be refused.
			const mayRun = isAgain || hasRoom(keyId, usage, "running", concurrencyMax, 1, nowMs);
			const mayCome = isAgain || hasRoom(keyId, usage, "rate", requestsPerMinute, 1, nowMs);
			if (!hasRoom(keyId, usage, "tokens", tokensPerMinute, tokens, nowMs) || !mayRun || !mayCome) return false;
			usage.count += 1;
			usage.tokens += tokens;
			usage.running += 1;
			return true;
		},
		/** Requests a larger share. Resolves even if none is free. Fault service_unavailable if Postgres does not answer. */
		async draw(keyId: string, { requestsPerMinute, concurrencyMax, tokensPerMinute }: RequestLimits, tokens: number) {
			const usage = usageOf(keyId, clock.monotonicMs());
			const limits = [
				["running", concurrencyMax, 1] as const,
				["rate", requestsPerMinute, 1] as const,
				["tokens", tokensPerMinute, tokens] as const,
			];
			for (const [kind, limit, size] of limits) {
				const share = limit === null ? undefined : shareOf(keyId, usage, kind, limit);
				if (share && countOf(usage, kind, clock.monotonicMs()) > share.amount - size) await shares?.draw(share, size);
			}
		},
		/** Ends a request. `spare`: tokens counted at `enteredMs` (monotonic) and not used; negative if more were used. */
		leave(keyId: string, spare: number, enteredMs: number) {
			const usage = running(keyId);
			usage.running -= 1;
			const nowMs = clock.monotonicMs();
			if (spare !== 0) {
				advanceWindow(usage, nowMs, clock);
				giveBackTokens(usage, spare, enteredMs);
			}
			giveBackContested(usage.runningShare, nowMs);
			if (spare !== 0) giveBackContested(usage.tokensShare, nowMs);
		},
		/** Undoes an `enter` of the same event-loop tick. */
		withdraw(keyId: string, tokens: number) {
			const usage = running(keyId);
			usage.running -= 1;
			usage.count -= 1;
			usage.tokens -= tokens;
		},
		/** Number of the key's running requests on this instance. */
		running: (keyId: string) => usages.get(keyId)?.running ?? 0,
		rateLimitState(keyId: string, kind: WindowKind, limit: number): RateLimitState {
			const nowMs = clock.monotonicMs();
			const usage = usageOf(keyId, nowMs);
			const share = usage[SHARE_OF[kind]];
			const most = share === undefined ? limit : Math.min(limit, share.amount + share.free);
			const remaining = Math.max(0, Math.floor(most - countOf(usage, kind, nowMs)));
			return { limit, remaining, resetMs: (zeroAtMs(windowOf(usage, kind)) ?? nowMs) - nowMs };
		},
		/** Returns unused parts of this key's shares, because another instance needs them. */
		recall(keyId: string) {
			const usage = usages.get(keyId);
			if (usage === undefined) return;
			for (const share of sharesOf(usage)) {
				if (share === undefined) continue;
				share.contestedUntilMs = clock.monotonicMs() + CONTESTED_MS;
				shares?.giveBack(share);
			}
		},
		/** Returns the unused parts of all shares and stops. */
		async stop() {
			cancelTick();
			for (const usage of usages.values()) for (const share of sharesOf(usage)) if (share) shares?.giveBack(share);
			await shares?.sent();
		},
	};
}

const isDrawn = ({ rateShare, runningShare, tokensShare }: Usage) =>
	rateShare?.drawing !== undefined || runningShare?.drawing !== undefined || tokensShare?.drawing !== undefined;

const windowOf = (usage: Usage, kind: WindowKind): RateWindow => (kind === "rate" ? usage : tokenWindow(usage));

const countOf = (usage: Usage, kind: LimitKind, nowMs: number) =>
	kind === "running" ? usage.running : slidingCount(windowOf(usage, kind), nowMs);

function refusal(
	id: string,
	usage: Usage,
	kind: LimitKind,
	limit: number,
	size: number,
	share: Share | undefined,
	nowMs: number,
): Fault {
	const [who, count] = [limitHolder(id), limit];
	if (kind === "running")
		return new Fault("rate_limit_exceeded", "{who} is limited to {count} concurrent requests. Retry later.", {
			values: { who, count },
			retryAfterS: 1,
		});
	if (size > limit)
		return new Fault(
			"rate_limit_exceeded",
			"{who} is limited to {count} tokens per minute, and this request may use up to {tokens}. Lower `max_tokens` or shorten the prompt.",
			{ values: { who, count, tokens: size }, isFinal: true },
		);
	const text =
		kind === "rate"
			? "{who} is limited to {count} requests per minute. Retry later."
			: "{who} is limited to {count} tokens per minute. Retry later.";
	const retryAtMs = comeBackAtMs(windowOf(usage, kind), limit, size, share, nowMs);
	return new Fault("rate_limit_exceeded", text, {
		values: { who, count },
		retryAfterS: Math.max(1, Math.ceil((retryAtMs - nowMs) / 1000)),
	});
}

function limitHolder(id: string): string {
	if (id.startsWith("proj_")) return "The project of this key";
	if (!id.startsWith("acc_")) return "This key";
	return id.includes(" ") ? "This account with this model" : "This account";
}

/** Time at which a retry may succeed: when own counts expire, or after the time in which the limit admits `size`. */
function comeBackAtMs(window: RateWindow, limit: number, size: number, share: Share | undefined, nowMs: number) {
	if (slidingCount(window, nowMs) > limit - size) return freeAtMs(window, limit, size);
	const paceMs = nowMs + (WINDOW_MS * size) / limit;
	return share !== undefined && share.amount >= size ? Math.min(freeAtMs(window, share.amount, size), paceMs) : paceMs;
}
