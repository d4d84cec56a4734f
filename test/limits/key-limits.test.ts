import { describe, expect, test } from "bun:test";
import type { Fault } from "../../src/base/fault.ts";
import { createKeyLimits, type RequestLimits } from "../../src/limits/key-limits.ts";
import { createManualClock } from "../support/upstream-clock.ts";
import { limitsOf } from "./limits-world.ts";

function setUp() {
	const clock = createManualClock();
	const limits = createKeyLimits({ clock });
	/** The refusal of a request; undefined if it is admitted. */
	const refusal = (of: RequestLimits, tokens: number): Fault | undefined => {
		try {
			limits.enter("key", of, tokens);
			return undefined;
		} catch (error) {
			expect((error as Fault).code).toBe("rate_limit_exceeded");
			return error as Fault;
		}
	};
	const enter = (perMinute: number | null, atOnce: number | null = null) =>
		refusal(limitsOf(perMinute, atOnce), 1)?.retryAfterS;
	return { clock, limits, refusal, enter };
}

describe("a limit of requests a minute", () => {
	test("admits at once as many requests as it permits, and states when to retry", () => {
		const { enter, limits } = setUp();
		for (let sent = 0; sent < 5; sent++) {
			expect(enter(5)).toBeUndefined();
			limits.leave("key", 0, 0);
		}
		expect(enter(5)).toBeGreaterThanOrEqual(1);
	});

	test("keeps the counts of up to a quarter of a million keys", () => {
		const { enter, limits } = setUp();
		for (let sent = 0; sent < 5; sent++) {
			enter(5);
			limits.leave("key", 0, 0);
		}
		let others = 0;
		const come = (upTo: number) => {
			for (; others < upTo; others++) {
				limits.enter(`other ${others}`, limitsOf(5, null), 1);
				limits.leave(`other ${others}`, 0, 0);
			}
		};
		come(240_000);
		expect(enter(5)).toBeGreaterThanOrEqual(1);
		come(550_000);
		expect(enter(5)).toBeUndefined();
	});

	test("admits a retry at the stated time, not a second earlier", () => {
		for (const perMinute of [1, 2, 5, 60]) {
			for (const usedAfterMs of [0, 20_000, 59_000, 61_000, 90_000]) {
				const { clock, enter } = setUp();
				enter(perMinute);
				clock.advance(usedAfterMs);
				while (enter(perMinute) === undefined);
				const waitS = enter(perMinute) as number;
				clock.advance((waitS - 1) * 1000 - 1);
				if (waitS > 1) expect(enter(perMinute)).toBeDefined();
				clock.advance(1001);
				expect(enter(perMinute)).toBeUndefined();
			}
		}
	});

	test("admits at most twice its number in a minute, and its number on average", () => {
		const { clock, enter } = setUp();
		let passed = 0;
		for (let step = 0; step < 6_000; step++) {
			if (enter(30) === undefined) passed += 1;
			clock.advance(100);
		}
		expect(passed).toBeLessThanOrEqual(30 * 11);
		expect(passed).toBeGreaterThanOrEqual(30 * 9);
	});

	test.each([-45_000, -30_000, -25_000, -1_500, -400, 400, 1_500, 25_000, 30_000, 45_000])(
		"admits requests within the limit although the wall clock is set by %i ms",
		(stepMs) => {
			const clock = createManualClock();
			let setMs = 0;
			const limits = createKeyLimits({ clock: { ...clock, wallMs: () => clock.wallMs() + setMs } });
			for (let sent = 0; sent < 600; sent++) {
				limits.enter("key", limitsOf(60, null), 1);
				limits.leave("key", 0, 0);
				clock.advance(1_050);
				if (sent % 130 === 129) setMs += stepMs;
			}
		},
	);

	test.each([-900, -1, 0, 1, 900])(
		"admits its number once a minute although the clock is then set by %i ms",
		(apartMs) => {
			const clock = createManualClock(60_000_000);
			let setMs = 0;
			const limits = createKeyLimits({ clock: { ...clock, wallMs: () => clock.wallMs() + setMs } });
			const admitted = () => {
				for (let count = 0; ; count++) {
					try {
						limits.enter("key", limitsOf(60, null), 1);
					} catch {
						return count;
					}
				}
			};
			clock.advance(59_000);
			expect(admitted()).toBe(60);
			setMs = apartMs;
			clock.advance(1_000);
			expect(admitted()).toBeLessThanOrEqual(1);
		},
	);

	test("states the time until all of its requests are available again", () => {
		const { clock, limits, enter } = setUp();
		clock.advance(60_000 - (clock.wallMs() % 60_000));
		enter(5);
		const resetsMs = [10_000, 60_000, 60_000].map((passedMs) => {
			clock.advance(passedMs);
			return limits.rateLimitState("key", "rate", 5).resetMs;
		});
		expect(resetsMs).toEqual([110_000, 50_000, 0]);
	});

	test("is checked by `check` as by `enter`, without counting a request", () => {
		const { limits, enter } = setUp();
		const check = (perMinute: number | null, atOnce: number | null) => limits.check("key", limitsOf(perMinute, atOnce));
		for (let checks = 0; checks < 3; checks++) check(1, 1);
		expect(enter(1, 1)).toBeUndefined();
		expect(() => check(1, null)).toThrow("requests per minute");
		expect(() => check(null, 1)).toThrow("concurrent requests");
		check(null, null);
	});

	test("does not count a withdrawn request", () => {
		const { enter, limits } = setUp();
		expect(enter(1)).toBeUndefined();
		limits.withdraw("key", 1);
		expect(limits.running("key")).toBe(0);
		expect(enter(1)).toBeUndefined();
		expect(enter(1)).toBeDefined();
	});

	test("counts each key separately, and counts nothing without a limit", () => {
		const { limits, enter } = setUp();
		for (let sent = 0; sent < 1_000; sent++) expect(enter(null)).toBeUndefined();
		limits.enter("other", limitsOf(1, 1), 1);
		expect(() => limits.enter("other", limitsOf(1, null), 1)).toThrow();
	});
});

describe("a limit of concurrent requests", () => {
	test("admits its number of requests, and another request when one ends", () => {
		const { limits, enter } = setUp();
		expect(enter(null, 2)).toBeUndefined();
		expect(enter(null, 2)).toBeUndefined();
		expect(enter(null, 2)).toBe(1);
		limits.leave("key", 0, 0);
		expect(enter(null, 2)).toBeUndefined();
		expect(limits.running("key")).toBe(2);
	});

	test("does not count a refused request", () => {
		const { limits, enter } = setUp();
		enter(null, 1);
		expect(enter(null, 1)).toBe(1);
		expect(limits.running("key")).toBe(1);
		limits.leave("key", 0, 0);
		expect(() => limits.leave("key", 0, 0)).toThrow();
	});
});

describe("a limit of tokens a minute", () => {
	const perMinute = (tokensPerMinute: number) => ({ ...limitsOf(null), tokensPerMinute });

	function withTokens(limit: number) {
		const { clock, limits, refusal } = setUp();
		clock.advance(60_000 - (clock.wallMs() % 60_000));
		const enter = (tokens: number) => refusal(perMinute(limit), tokens);
		const remaining = () => limits.rateLimitState("key", "tokens", limit).remaining;
		return { clock, limits, enter, remaining };
	}

	test("counts a request's highest token use until the request ends, then its real use", () => {
		const { clock, limits, enter, remaining } = withTokens(1_000);
		const [, enteredMs] = [enter(900), clock.monotonicMs()];
		expect(remaining()).toBe(100);
		expect(enter(200)?.message).toBe("This key is limited to 1000 tokens per minute. Retry later.");
		limits.leave("key", 850, enteredMs);
		expect(remaining()).toBe(950);
		expect([enter(950), enter(1)?.code]).toEqual([undefined, "rate_limit_exceeded"]);
	});

	test.each([
		[30_000, 1_000 - 50],
		[90_000, 1_000 - 25],
		[150_000, 1_000],
	])("frees a request's unused tokens in the minute that counted them (%i ms later)", (laterMs, left) => {
		const { clock, limits, enter, remaining } = withTokens(1_000);
		const [, enteredMs] = [enter(900), clock.monotonicMs()];
		clock.advance(laterMs);
		limits.leave("key", 850, enteredMs);
		expect(remaining()).toBe(left);
		expect(enter(left)).toBeUndefined();
	});

	test("refuses a request above the limit finally, and a smaller one until a stated time", () => {
		const { clock, enter } = withTokens(100);
		expect(enter(101)).toMatchObject({ isFinal: true, message: expect.stringContaining("up to 101") });
		expect(enter(100)).toBeUndefined();
		const { retryAfterS } = enter(40) as Fault;
		clock.advance((retryAfterS as number) * 1_000);
		expect(enter(40)).toBeUndefined();
	});

	test("counts tokens used beyond a request's bound, and none of a withdrawn request", () => {
		const { clock, limits, enter, remaining } = withTokens(100);
		enter(60);
		limits.withdraw("key", 60);
		expect(remaining()).toBe(100);
		enter(60);
		limits.leave("key", -30, clock.monotonicMs());
		expect(remaining()).toBe(10);
	});

	test("applies to a repeated attempt of a request, unlike the limits of requests", () => {
		const { limits } = setUp();
		const both = { ...limitsOf(1, 1), tokensPerMinute: 100 };
		limits.enter("key", both, 80);
		expect(limits.enter("key", both, 20, true)).toBe(true);
		expect(() => limits.enter("key", both, 1, true)).toThrow("tokens per minute");
	});
});
