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

describe("failures proved to be the replica's", () => {
	test("open the breaker after the limit in a row; an answer restarts the count", () => {
		const { breaker, fail, succeed, letsIn } = setUp();
		fail(2);
		succeed();
		fail(2);
		expect(letsIn()).toBe("abcz");
		fail();
		expect(breaker.state()).toBe("open");
		expect(letsIn()).toBe("");
	});

	test("open the breaker at half of the last twenty calls", () => {
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

	test("the share counts only from twenty calls on", () => {
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

	test("one trial follows each cool-down, which doubles up to a maximum", () => {
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

	test("a trial whose client leaves allows another trial", () => {
		const { clock, breaker, fail, letsIn } = setUp();
		fail(3);
		clock.advance(1_000);
		expect(letsIn()).toBe("abcz");
		breaker.end(breaker.begin("a"), "neutral");
		expect(letsIn()).toBe("abcz");
	});

	test("a slow trial allows a second one after five seconds", () => {
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

	test("late results of calls from before the opening are ignored", () => {
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

describe("failures that may be the request's fault", () => {
	test("one account's failures keep only that account away", () => {
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

	test("one account's failures do not add up while others are answered", () => {
		const { clock, breaker, suspects, succeed, letsIn } = setUp();
		for (let round = 0; round < 100; round += 1) {
			suspects("aa");
			succeed("b");
			clock.advance(100);
		}
		expect(breaker.state()).toBe("closed");
		expect(letsIn()).toBe("abcz");
	});

	test("several accounts' failures open the breaker of an unhealthy replica", () => {
		const { health, breaker, suspects, letsIn } = setUp();
		health.up = false;
		suspects("aab");
		expect(breaker.state()).toBe("open");
		expect(letsIn()).toBe("");
	});

	test("several accounts' failures keep them away from a healthy replica", () => {
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

	test("failures of 64 accounts open the breaker of a healthy replica", () => {
		const { breaker, suspects, letsIn } = setUp();
		// One account less than the number of failing accounts that opens the circuit breaker.
		const few = Array.from({ length: 63 }, (_, at) => String.fromCharCode(0x100 + at)).join("");
		suspects(few);
		expect(letsIn(`${few}yz`)).toBe("yz");
		suspects("y");
		expect(breaker.state()).toBe("open");
		expect(letsIn(`${few}yz`)).toBe("");
	});

	test("an early trial shows the breaker as open until its answer", () => {
		const { breaker, fail, letsIn } = setUp();
		fail(3);
		const failing = breaker.begin("a");
		expect([breaker.state(), breaker.shown(), letsIn()]).toEqual(["half_open", "open", ""]);
		breaker.end(failing, "failed");
		expect([breaker.state(), breaker.shown()]).toEqual(["open", "open"]);
		breaker.end(breaker.begin("a"), "ok");
		expect([breaker.state(), breaker.shown(), letsIn()]).toEqual(["closed", "closed", "abcz"]);
	});

	test("a few accounts cannot take the replica from others", () => {
		for (let seed = 0; seed < 200; seed += 1) {
			const random = createRandom(seed);
			const { clock, breaker, suspects, succeed } = setUp();
			for (let step = 0; step < 100; step += 1) {
				const bad = random.pick([..."abcd"]);
				if (breaker.allows(bad)) suspects(bad);
				if (random.fraction() < 0.5) clock.advance(random.between(1, 4_000));
				// The failure has ended any trial, so another request is allowed.
				expect(breaker.allows("z")).toBe(true);
				if (random.fraction() < 0.1) succeed("z");
			}
		}
	});

	test("no account is kept away while others are answered", () => {
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
		// Two accounts cannot open the circuit breaker, however often they fail, if one of them gets an answer in between.
		for (let round = 0; round < 50; round += 1) {
			suspects("ababab");
			succeed("a");
		}
		suspects("abab");
		expect(breaker.state()).toBe("closed");
		// An answer proves a working server for ten seconds only.
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

	test("failing accounts cause at most one trial per ten seconds", () => {
		const { clock, breaker, suspects, letsIn } = setUp();
		let tried = 0;
		for (let second = 0; second < 100; second += 1) {
			for (const bad of "aabb") if (breaker.allows(bad)) suspects(bad);
			expect(letsIn("z")).toBe("z");
			const call = breaker.begin("z");
			// Other calls are long answers that do not end during the test.
			if (breaker.state() === "half_open") {
				tried += 1;
				breaker.end(call, "ok");
			}
			clock.advance(1_000);
		}
		expect(tried).toBeWithin(5, 11);
	});

	test("the share counts only with failures of several accounts", () => {
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

	test("one account cannot keep the breaker open for the next", () => {
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

	test("failed trials of two accounts open the breaker of an unhealthy replica", () => {
		const { clock, health, breaker, fail, suspects } = setUp();
		health.up = false;
		fail(3);
		clock.advance(1_000);
		suspects("ab");
		expect(breaker.state()).toBe("open");
	});
});

describe("suspect failures that are judged later", () => {
	test("a failure of a request answered elsewhere is the replica's", () => {
		const { breaker, call } = setUp();
		const calls = [1, 2, 3].map(() => call("a", "suspect"));
		expect(breaker.state()).toBe("closed");
		for (const failed of calls) breaker.judge(failed, "failed");
		expect(breaker.state()).toBe("open");
	});

	test("a few accounts' failures do not open the breaker while others are answered", () => {
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

	test("a few accounts' failures do not reopen the breaker during a trial", () => {
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

	test("a failure of a request that failed elsewhere is ignored", () => {
		const { breaker, call, letsIn } = setUp();
		for (let round = 0; round < 100; round += 1) breaker.judge(call(round % 2 ? "a" : "b", "suspect"), "neutral");
		expect(breaker.state()).toBe("closed");
		expect(letsIn()).toBe("abcz");
	});

	test("an account is allowed again when its failures are judged neutral", () => {
		const { breaker, call, letsIn } = setUp();
		const calls = [1, 2, 3].map(() => call("a", "suspect"));
		expect(letsIn()).toBe("bcz");
		breaker.judge(calls[0] as BreakerCall, "neutral");
		expect(letsIn()).toBe("abcz");
	});

	test("reports the time of the last other failure", () => {
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
