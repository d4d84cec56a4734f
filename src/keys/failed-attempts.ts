import type { Clock } from "../base/clock.ts";
import { Fault } from "../base/fault.ts";

export type FailedAttempts = ReturnType<typeof createFailedAttempts>;

export interface FailedAttemptsOptions {
	/** Failures per minute and address that get their specific error; any others get a 429. */
	perMinuteMax(): number;
}

const WINDOW_MS = 60_000;
const TRICKLE_MS = 1_000;
/** Maximum number of addresses in memory. Beyond it, the oldest is dropped. */
const ADDRESSES_MAX = 20_000;

interface Window {
	endsAtMs: number;
	failures: number;
	/** Time of the next attempt that is allowed although there were too many failures. */
	trickleAtMs: number;
}

/** Counts failed authentications per address. Never refuses a valid key, even from an attacker's address. */
export function createFailedAttempts(deps: { clock: Clock }, options: FailedAttemptsOptions) {
	/** In the order in which the windows started: a new window moves its address to the end. */
	const windows = new Map<string, Window>();

	function windowOf(network: string, nowMs: number): Window {
		const known = windows.get(network);
		if (known !== undefined && nowMs < known.endsAtMs) return known;
		windows.delete(network);
		if (windows.size >= ADDRESSES_MAX) {
			for (const oldest of windows.keys()) {
				windows.delete(oldest);
				break;
			}
		}
		const fresh = { endsAtMs: nowMs + WINDOW_MS, failures: 0, trickleAtMs: nowMs };
		windows.set(network, fresh);
		return fresh;
	}

	function tooMany({ endsAtMs }: Window, nowMs: number): Fault {
		return new Fault(
			"rate_limit_exceeded",
			"Too many requests with an invalid API key came from this address. Please check the key.",
			{ retryAfterS: Math.max(1, Math.ceil((endsAtMs - nowMs) / 1000)) },
		);
	}

	return {
		/** Counts a failure. After too many, throws `rate_limit_exceeded`; otherwise the caller throws its own error. */
		count(address: string) {
			const nowMs = deps.clock.monotonicMs();
			const window = windowOf(addressNetwork(address), nowMs);
			window.failures += 1;
			if (window.failures > options.perMinuteMax()) throw tooMany(window, nowMs);
		},
		/** Failures that the address may still have in its current window. */
		left(address: string) {
			const nowMs = deps.clock.monotonicMs();
			const known = windows.get(addressNetwork(address));
			if (known === undefined || nowMs >= known.endsAtMs) return options.perMinuteMax();
			return Math.max(0, options.perMinuteMax() - known.failures);
		},
		tooMany(address: string) {
			const nowMs = deps.clock.monotonicMs();
			return tooMany(windowOf(addressNetwork(address), nowMs), nowMs);
		},
		/** Allows one attempt a second in spite of too many failures: 0 if now, else milliseconds until the next one. */
		takeTrickle(address: string) {
			const nowMs = deps.clock.monotonicMs();
			const window = windowOf(addressNetwork(address), nowMs);
			if (nowMs < window.trickleAtMs) return window.trickleAtMs - nowMs;
			window.trickleAtMs = nowMs + TRICKLE_MS;
			return 0;
		},
		size: () => windows.size,
	};
}

/** An IPv4 address, or the /64 network of an IPv6 address, because one customer usually has a whole /64. */
export function addressNetwork(address: string): string {
	const bare = address.split("%")[0] ?? "";
	const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(bare);
	if (mapped?.[1] !== undefined) return mapped[1];
	if (!bare.includes(":")) return bare;
	const [head = "", tail] = bare.toLowerCase().split("::");
	const before = head === "" ? [] : head.split(":");
	if (tail === undefined) return before.slice(0, 4).map(withoutZeros).join(":");
	const after = tail === "" ? [] : tail.split(":");
	const zeros = Array.from({ length: Math.max(0, 8 - before.length - after.length) }, () => "0");
	return [...before, ...zeros, ...after].slice(0, 4).map(withoutZeros).join(":");
}

/** The /24 or /48 network of an address, all of whose addresses may belong to one owner. */
export function addressSite(address: string): string {
	const network = addressNetwork(address);
	return network
		.split(network.includes(":") ? ":" : ".")
		.slice(0, 3)
		.join(":");
}

const withoutZeros = (group: string): string => group.replace(/^0+(?=.)/, "");
