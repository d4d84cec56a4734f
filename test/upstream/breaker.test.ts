import { describe, expect, test } from "bun:test";
import { type BreakerCall, createBreaker } from "../../src/upstream/replicas/breaker.ts";
import type { CallOutcome } from "../../src/upstream/replicas/call-outcomes.ts";
import { createRandom } from "../support/random.ts";
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
	const health = { up: true };
	const breaker = createBreaker(
		clock,
		() => limits,
		() => health.up,
	);
	const call = (accountId: string, outcome: CallOutcome): BreakerCall => {
		const begun = breaker.begin(accountId);
		breaker.end(begun, outcome);
		return begun;
	};
	return {
		clock,
		health,
		breaker,
		call,
		fail: (times = 1) => {
			for (let at = 0; at < times; at += 1) call("a", "failed");
		},
		suspects: (names: string) => {
			for (const name of names) {
				breaker.state();
				call(name, "suspect");
			}
		},
		succeed: (name = "a") => call(name, "ok"),
		letsIn: (names = "abcz") => [...names].filter((name) => breaker.allows(name)).join(""),
	};
}

describe("failures that prove a fault of the replica", () => {
	test("open the breaker at a number of failures in a row, which any answer resets", () => {
		const { breaker, fail, succeed, letsIn } = setUp();
		fail(2);
		succeed();
		fail(2);
		expect(letsIn()).toBe("abcz");
		fail();
		expect(breaker.state()).toBe("open");
		expect(letsIn()).toBe("");
	});

	test("open the breaker if half of the last twenty calls failed", () => {
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

	test("open the breaker by their fraction only after twenty calls", () => {
		const { breaker, fail, succeed } = setUp();
		for (let round = 0; round < 5; round += 1) {
			fail(2);
			succeed();
		}
		expect(breaker.state()).toBe("closed");
		fail(2);
		succeed();
		fail(1);
		expect(breaker.state()).toBe("closed");
		fail(1);
		expect(breaker.state()).toBe("open");
	});

	test("lead to one trial call per cool-down, which doubles up to a maximum", () => {
		const { clock, breaker, fail, succeed, letsIn } = setUp();
		fail(3);
		for (const coolMs of [1_000, 2_000, 3_000, 3_000]) {
			clock.advance(coolMs - 1);
			expect(letsIn()).toBe("");
			clock.advance(1);
			expect(letsIn()).toBe("abcz");
			const trial = breaker.begin("a");
			expect(letsIn()).toBe("");
			breaker.end(trial, "failed");
			expect(breaker.state()).toBe("open");
		}
		clock.advance(3_000);
		expect(breaker.state()).toBe("half_open");
		succeed();
		expect(breaker.state()).toBe("closed");
		fail(3);
		expect(breaker.coolMsLeft("z")).toBe(1_000);
	});

	test("lead to another trial call if the client of a trial call leaves", () => {
		const { clock, breaker, fail, letsIn } = setUp();
		fail(3);
		clock.advance(1_000);
		expect(letsIn()).toBe("abcz");
		breaker.end(breaker.begin("a"), "neutral");
		expect(letsIn()).toBe("abcz");
	});

	test("lead to a second trial call after five seconds if the first is slow", () => {
		const { clock, breaker, fail, letsIn } = setUp();
		fail(3);
		clock.advance(1_000);
		expect(letsIn()).toBe("abcz");
		const slow = breaker.begin("a");
		clock.advance(4_999);
		expect(letsIn()).toBe("");
		clock.advance(1);
		expect(letsIn()).toBe("abcz");
		const next = breaker.begin("b");
		expect(letsIn()).toBe("");
		breaker.end(next, "ok");
		expect(breaker.state()).toBe("closed");
		breaker.end(slow, "failed");
		fail(2);
		expect(breaker.state()).toBe("closed");
	});

	test("are ignored if their call began before the breaker opened", () => {
		const { clock, breaker, fail } = setUp();
		const early = [breaker.begin("a"), breaker.begin("b")];
		fail(3);
		clock.advance(1_000);
		expect(breaker.state()).toBe("half_open");
		breaker.end(early[0] as BreakerCall, "ok");
		expect(breaker.state()).toBe("half_open");
		breaker.end(early[1] as BreakerCall, "failed");
		expect(breaker.state()).toBe("half_open");
	});
});

describe("failures that the request itself may have caused", () => {
	test("of one account close the replica only to this account", () => {
		const { clock, breaker, suspects, letsIn } = setUp();
		suspects("aaaaaaaaaa");
		expect(breaker.state()).toBe("closed");
		expect(letsIn()).toBe("bcz");
		expect([breaker.coolMsLeft("a"), breaker.coolMsLeft("b")]).toEqual([1_000, 0]);
		clock.advance(1_000);
		expect(letsIn()).toBe("abcz");
		suspects("a");
		expect(letsIn()).toBe("bcz");
		expect(breaker.coolMsLeft("a")).toBe(2_000);

		const ill = setUp();
		ill.health.up = false;
		ill.suspects("aaaaaaaaaa");
		expect(ill.letsIn()).toBe("bcz");
	});

	test("of one account keep the breaker closed while other accounts get answers", () => {
		const { clock, breaker, suspects, succeed, letsIn } = setUp();
		for (let round = 0; round < 100; round += 1) {
			suspects("aa");
			succeed("b");
			clock.advance(100);
		}
		expect(breaker.state()).toBe("closed");
		expect(letsIn()).toBe("abcz");
	});

	test("of several accounts open the breaker of a replica that fails its health checks", () => {
		const { health, breaker, suspects, letsIn } = setUp();
		health.up = false;
		suspects("aab");
		expect(breaker.state()).toBe("open");
		expect(letsIn()).toBe("");
	});

	test("of several accounts close a healthy replica only to these accounts", () => {
		const { clock, breaker, suspects, succeed, letsIn } = setUp();
		suspects("aab");
		expect([breaker.state(), breaker.shown()]).toEqual(["half_open", "open"]);
		expect([breaker.coolMsLeft("a"), breaker.coolMsLeft("b"), breaker.coolMsLeft("c")]).toEqual([1_000, 1_000, 0]);
		expect(letsIn()).toBe("cz");
		breaker.begin("c");
		expect(letsIn()).toBe("");
		suspects("c");
		expect(letsIn()).toBe("z");
		clock.advance(2_000);
		expect(letsIn()).toBe("abcz");
		expect([breaker.state(), breaker.shown()]).toEqual(["half_open", "half_open"]);
		suspects("ab");
		expect(letsIn()).toBe("cz");
		succeed("z");
		expect(breaker.state()).toBe("closed");
		expect(letsIn()).toBe("abcz");
	});

	test("open a closed breaker once 64 different accounts have such failures", () => {
		const { breaker, suspects, letsIn } = setUp();
		// One account fewer than the number of failing accounts that opens the circuit breaker.
		const few = Array.from({ length: 63 }, (_, at) => String.fromCharCode(0x100 + at)).join("");
		suspects(few);
		expect(letsIn(`${few}yz`)).toBe("yz");
		suspects("y");
		expect(breaker.state()).toBe("open");
		expect(letsIn(`${few}yz`)).toBe("");
	});

	test("show the breaker as open until an early trial call is answered", () => {
		const { breaker, fail, letsIn } = setUp();
		fail(3);
		const failing = breaker.begin("a");
		expect([breaker.state(), breaker.shown(), letsIn()]).toEqual(["half_open", "open", ""]);
		breaker.end(failing, "failed");
		expect([breaker.state(), breaker.shown()]).toEqual(["open", "open"]);
		breaker.end(breaker.begin("a"), "ok");
		expect([breaker.state(), breaker.shown(), letsIn()]).toEqual(["closed", "closed", "abcz"]);
	});

	test("of a few accounts never close the replica to other accounts", () => {
		for (let seed = 0; seed < 200; seed += 1) {
			const random = createRandom(seed);
			const { clock, breaker, suspects, succeed } = setUp();
			for (let step = 0; step < 100; step += 1) {
				const bad = random.pick([..."abcd"]);
				if (breaker.allows(bad)) suspects(bad);
				if (random.fraction() < 0.5) clock.advance(random.between(1, 4_000));
				// The failure has ended any running trial, so another request is allowed.
				expect(breaker.allows("z")).toBe(true);
				if (random.fraction() < 0.1) succeed("z");
			}
		}
	});

	test("keep the breaker closed while other accounts get answers", () => {
		const { clock, health, breaker, suspects, succeed } = setUp();
		succeed("z");
		suspects("abab");
		expect(breaker.state()).toBe("closed");
		for (let round = 0; round < 50; round += 1) {
			succeed("z");
			suspects("abab");
			clock.advance(50);
		}
		expect(breaker.state()).toBe("closed");
		// However often two accounts fail, they cannot open the circuit breaker if one of them is answered in between.
		for (let round = 0; round < 50; round += 1) {
			suspects("ababab");
			succeed("a");
		}
		suspects("abab");
		expect(breaker.state()).toBe("closed");
		// An answer is evidence of a working server for only ten seconds.
		clock.advance(10_001);
		suspects("ab");
		expect(breaker.state()).toBe("half_open");

		const other = setUp();
		other.succeed("z");
		other.health.up = false;
		other.suspects("aba");
		expect(other.breaker.state()).toBe("open");
		expect(health.up).toBe(true);
	});

	test("cause at most one trial call per ten seconds", () => {
		const { clock, breaker, suspects, letsIn } = setUp();
		let tried = 0;
		for (let second = 0; second < 100; second += 1) {
			for (const bad of "aabb") if (breaker.allows(bad)) suspects(bad);
			expect(letsIn("z")).toBe("z");
			const call = breaker.begin("z");
			// All other calls are long answers that do not end during the test.
			if (breaker.state() === "half_open") {
				tried += 1;
				breaker.end(call, "ok");
			}
			clock.advance(1_000);
		}
		expect(tried).toBeWithin(5, 11);
	});

	test("count as a fraction of the calls only if several accounts fail", () => {
		const alone = setUp();
		for (let round = 0; round < 40; round += 1) {
			alone.suspects("a");
			alone.succeed("b");
		}
		expect(alone.breaker.state()).toBe("closed");
		const several = setUp();
		for (let round = 0; round < 5; round += 1) {
			several.succeed("a");
			several.suspects("a");
			several.succeed("b");
			several.suspects("b");
		}
		expect(several.letsIn()).toBe("cz");
	});

	test("of one account do not keep the breaker open for the next account", () => {
		const { clock, breaker, fail, suspects, succeed, letsIn } = setUp();
		fail(3);
		clock.advance(1_000);
		for (let round = 0; round < 10; round += 1) {
			suspects("a");
			expect(breaker.state()).toBe("half_open");
			expect(letsIn()).toBe("bcz");
			clock.advance(3_000);
			expect(letsIn()).toBe("abcz");
		}
		suspects("a");
		succeed("b");
		expect(breaker.state()).toBe("closed");
		expect(letsIn()).toBe("abcz");
	});

	test("of two accounts in trial calls open the breaker of an unhealthy replica", () => {
		const { clock, health, breaker, fail, suspects } = setUp();
		health.up = false;
		fail(3);
		clock.advance(1_000);
		suspects("ab");
		expect(breaker.state()).toBe("open");
	});
});

describe("a suspected failure whose cause is found later", () => {
	test("counts against the replica if another replica answers the request", () => {
		const { breaker, call } = setUp();
		const calls = [1, 2, 3].map(() => call("a", "suspect"));
		expect(breaker.state()).toBe("closed");
		for (const failed of calls) breaker.judge(failed, "failed");
		expect(breaker.state()).toBe("open");
	});

	test("of a few accounts does not open the breaker while other accounts get answers", () => {
		const { clock, breaker, call, succeed, letsIn } = setUp();
		const proved = (names: string) => {
			for (const name of names) if (breaker.allows(name)) breaker.judge(call(name, "suspect"), "failed");
		};
		for (const names of ["aaaa", "aabbccdd"]) {
			for (let round = 0; round < 50; round += 1) {
				succeed("z");
				proved(names);
				expect(letsIn("z")).toBe("z");
				clock.advance(100);
			}
		}
		succeed("z");
		proved("abcde");
		expect(breaker.state()).toBe("open");
	});

	test("of a few accounts does not open the breaker again during a trial call", () => {
		const { clock, breaker, call, fail, succeed, letsIn } = setUp();
		fail(3);
		clock.advance(1_000);
		for (const name of "abcd") {
			expect(letsIn("z")).toBe("z");
			breaker.judge(call(name, "suspect"), "failed");
		}
		expect(letsIn("abcdz")).toBe("z");
		succeed("z");
		expect(breaker.state()).toBe("closed");
		fail(3);
		clock.advance(1_000);
		expect(letsIn("z")).toBe("z");
		for (const name of "abcde") breaker.judge(call(name, "suspect"), "failed");
		expect(letsIn("z")).toBe("");
	});

	test("is ignored if the request fails on another replica too", () => {
		const { breaker, call, letsIn } = setUp();
		for (let round = 0; round < 100; round += 1) breaker.judge(call(round % 2 ? "a" : "b", "suspect"), "neutral");
		expect(breaker.state()).toBe("closed");
		expect(letsIn()).toBe("abcz");
	});

	test("no longer closes the replica to its account once no replica is blamed", () => {
		const { breaker, call, letsIn } = setUp();
		const calls = [1, 2, 3].map(() => call("a", "suspect"));
		expect(letsIn()).toBe("bcz");
		breaker.judge(calls[0] as BreakerCall, "neutral");
		expect(letsIn()).toBe("abcz");
	});

	test("is reported with the time of the replica's last other failure", () => {
		const { clock, breaker, call, succeed } = setUp();
		const startMs = clock.monotonicMs();
		const first = call("a", "suspect");
		expect(breaker.otherFailureAtMs(first)).toBeUndefined();
		clock.advance(5);
		const second = call("a", "suspect");
		expect([breaker.otherFailureAtMs(first), breaker.otherFailureAtMs(second)]).toEqual([startMs + 5, startMs]);
		succeed("b");
		const third = call("a", "suspect");
		expect(breaker.otherFailureAtMs(third)).toBeUndefined();
		breaker.judge(third, "neutral");
		expect(breaker.otherFailureAtMs(call("a", "suspect"))).toBe(startMs + 5);
	});
});
