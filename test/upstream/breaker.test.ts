import { describe, expect, test } from "bun:test";
import { createBreaker } from "../../src/upstream/replicas/breaker.ts";
import { limitsWith } from "../support/upstream-catalog.ts";
import { createManualClock } from "../support/upstream-clock.ts";

const limits = limitsWith({
	breakerFailuresInRow: 3,
	breakerFailureShare: 0.5,
	breakerCoolMs: 1_000,
	breakerCoolMsMax: 3_000,
});

function setUp() {
	const clock = createManualClock();
	const breaker = createBreaker(clock, limits);
	return {
		clock,
		breaker,
		fail: (times = 1) => {
			for (let call = 0; call < times; call += 1) breaker.failed(breaker.begin());
		},
		succeed: () => breaker.succeeded(breaker.begin()),
	};
}

describe("breaker", () => {
	test("opens after the failures in a row, not before, and a success starts the count again", () => {
		const { breaker, fail, succeed } = setUp();
		fail(2);
		succeed();
		fail(2);
		expect(breaker.allows()).toBe(true);
		fail();
		expect(breaker.state()).toBe("open");
		expect(breaker.allows()).toBe(false);
	});

	test("opens when half of the last twenty calls failed", () => {
		const { breaker, fail, succeed } = setUp();
		for (let pair = 0; pair < 9; pair += 1) {
			succeed();
			fail();
		}
		succeed();
		expect(breaker.state()).toBe("closed");
		fail();
		expect(breaker.state()).toBe("open");
	});

	test("after the cool-down lets one call through; its success closes, its failure opens for twice as long, to a maximum", () => {
		const { clock, breaker, fail, succeed } = setUp();
		fail(3);
		for (const coolMs of [1_000, 2_000, 3_000, 3_000]) {
			clock.advance(coolMs - 1);
			expect(breaker.allows()).toBe(false);
			clock.advance(1);
			expect(breaker.allows()).toBe(true);
			const trial = breaker.begin();
			expect(breaker.allows()).toBe(false);
			breaker.failed(trial);
			expect(breaker.state()).toBe("open");
		}
		clock.advance(3_000);
		expect(breaker.state()).toBe("half_open");
		succeed();
		expect(breaker.state()).toBe("closed");
		fail(3);
		expect(breaker.coolMsLeft()).toBe(1_000);
	});

	test("a trial whose client leaves makes way for another", () => {
		const { clock, breaker, fail } = setUp();
		fail(3);
		clock.advance(1_000);
		expect(breaker.allows()).toBe(true);
		const trial = breaker.begin();
		breaker.neutral(trial);
		expect(breaker.allows()).toBe(true);
	});

	test("calls from before the opening change nothing when they end late", () => {
		const { clock, breaker, fail } = setUp();
		const early = [breaker.begin(), breaker.begin()];
		fail(3);
		clock.advance(1_000);
		expect(breaker.state()).toBe("half_open");
		breaker.succeeded(early[0] as number);
		expect(breaker.state()).toBe("half_open");
		breaker.failed(early[1] as number);
		expect(breaker.state()).toBe("half_open");
	});
});
