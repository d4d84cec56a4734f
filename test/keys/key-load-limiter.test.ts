import { describe, expect, test } from "bun:test";
import type { Fault } from "../../src/base/fault.ts";
import { createFailedAttempts } from "../../src/keys/failed-attempts.ts";
import type { KeyEntry } from "../../src/keys/key-entry.ts";
import { createKeyLoadLimiter } from "../../src/keys/key-load-limiter.ts";
import type { KeyDigest } from "../../src/keys/secret.ts";
import { createManualClock } from "../support/upstream-clock.ts";
import { waitFor } from "../support/wait.ts";

const LIMIT = 60;
/** Look-ups of one address that may wait for the one query a second after too many failures. */
const TRICKLE = 8;
const HERE = "192.0.2.1";

/** Sets up look-ups of keys, of which those that begin with "good" exist. `loads` lists the queries sent. */
function setUp(failuresPerMinuteMax = Number.POSITIVE_INFINITY) {
	const clock = createManualClock();
	const loads: string[] = [];
	let underWay = 0;
	let mostUnderWay = 0;
	const failedAttempts = createFailedAttempts({ clock }, { perMinuteMax: () => LIMIT });
	const keyring = {
		async load(digest: KeyDigest): Promise<KeyEntry | null> {
			loads.push(digest);
			underWay += 1;
			mostUnderWay = Math.max(mostUnderWay, underWay);
			await Bun.sleep(0);
			underWay -= 1;
			return digest.startsWith("good") ? ({ id: digest } as Partial<KeyEntry> as KeyEntry) : null;
		},
	};
	const keyLoadLimiter = createKeyLoadLimiter({ keyring, failedAttempts, clock }, { failuresPerMinuteMax });
	const find = (digest: string, address = HERE) =>
		keyLoadLimiter.find(digest as KeyDigest, address).then(
			() => "found",
			(error: Fault) => error.code as string,
		);
	return { clock, loads, find, mostUnderWay: () => mostUnderWay };
}

const many = (count: number, name: string) => Array.from({ length: count }, (_, at) => `${name}${at}`);
const counted = (results: readonly string[]) =>
	Object.fromEntries([...new Set(results)].sort().map((code) => [code, results.filter((one) => one === code).length]));

describe("unknown keys", () => {
	test("of one address use the address's limit of queries, then one query a second", async () => {
		const { clock, find, loads } = setUp();
		const heard: string[] = [];
		const all = many(900, "bad").map((digest) => find(digest).then((code) => heard.push(code)));
		await waitFor(() => heard.length === 900 - TRICKLE, "all but those that wait for their second");
		expect(counted(heard)).toEqual({ invalid_api_key: LIMIT, rate_limit_exceeded: 900 - TRICKLE - LIMIT });
		// One query had started before the window, so it is not part of the limit.
		expect(loads.length).toBe(LIMIT + 1);
		for (let second = 1; second < TRICKLE; second += 1) {
			clock.advance(1_000);
			await waitFor(() => heard.length === 900 - TRICKLE + second, "one more");
			expect(loads.length).toBe(LIMIT + 1 + second);
		}
		clock.advance(1_000);
		await Promise.all(all);
	});

	test("count as failed attempts even if they share a query", async () => {
		const { find, loads } = setUp();
		const results = await Promise.all(Array.from({ length: LIMIT + 40 }, () => find("bad")));
		expect(counted(results)).toEqual({ invalid_api_key: LIMIT, rate_limit_exceeded: 40 });
		expect(loads).toEqual(["bad"]);
	});

	test("are queried in order, each after the previous query", async () => {
		const clock = createManualClock();
		const failedAttempts = createFailedAttempts({ clock }, { perMinuteMax: () => 1 });
		const asked = new Map<string, PromiseWithResolvers<KeyEntry | null>>();
		const keyring = {
			load(digest: KeyDigest): Promise<KeyEntry | null> {
				const answer = Promise.withResolvers<KeyEntry | null>();
				asked.set(digest, answer);
				return answer.promise;
			},
		};
		const keyLoadLimiter = createKeyLoadLimiter({ keyring, failedAttempts, clock }, { failuresPerMinuteMax: 1_000 });
		const find = (digest: string) => keyLoadLimiter.find(digest as KeyDigest, HERE);
		const first = find("first");
		const second = find("second");
		const third = first.then(() => find("third"));
		await Bun.sleep(0);
		const entry = {} as KeyEntry;
		const order = ["first", "second", "third"];
		for (const [at, digest] of order.entries()) {
			expect([...asked.keys()]).toEqual(order.slice(0, at + 1));
			asked.get(digest)?.resolve(entry);
			await Bun.sleep(0);
		}
		expect(await Promise.all([first, second, third])).toEqual([entry, entry, entry]);
	});

	test("of many networks share one limit of queries, and delay no valid key", async () => {
		const { clock, find, loads } = setUp(600);
		for (const [at, digest] of many(2_000, "bad").entries()) void find(digest, `10.0.${at % 20}.${at % 99}`);
		await waitFor(() => loads.length === 32, "a burst of queries");
		let found = "";
		void find("good", "192.0.2.1").then((code) => {
			found = code;
		});
		let waitedMs = 0;
		for (; found === ""; waitedMs += 400) {
			await Bun.sleep(0);
			await Bun.sleep(0);
			clock.advance(400);
		}
		expect(found).toBe("found");
		// The burst's slots become free after 3.2 s; after that, ten queries run per second.
		expect(waitedMs).toBeLessThanOrEqual(4_000);
		expect(loads.length).toBeLessThanOrEqual(2 * 32 + 2);
	});
});

describe("known keys", () => {
	test("are queried once for any number of simultaneous requests", async () => {
		const { find, loads } = setUp();
		const results = await Promise.all(Array.from({ length: 5_000 }, () => find("good")));
		expect(counted(results)).toEqual({ found: 5_000 });
		expect(loads).toEqual(["good"]);
	});

	test("of one address are all found, with at most 32 concurrent queries", async () => {
		const { find, mostUnderWay } = setUp();
		const results = await Promise.all(many(500, "good").map((digest) => find(digest)));
		expect(counted(results)).toEqual({ found: 500 });
		expect(mostUnderWay()).toBe(32);
	});

	test("are found even from a blocked address, one key a second", async () => {
		const { clock, find } = setUp();
		for (const digest of many(LIMIT, "bad")) await find(digest);
		expect(await find("good")).toBe("found");
		const two = ["good two", "good three"].map((digest) => find(digest));
		clock.advance(1_000);
		expect(await Promise.race(two)).toBe("found");
		clock.advance(1_000);
		expect(await Promise.all(two)).toEqual(["found", "found"]);
	});

	test("of another address are found without a wait for unknown keys", async () => {
		const { find } = setUp();
		for (const digest of many(900, "bad")) void find(digest);
		expect(await find("good", "192.0.2.2")).toBe("found");
	});

	test("get 503 if more than a thousand of them wait", async () => {
		const { find } = setUp();
		const results = counted(await Promise.all(many(1_500, "good").map((digest) => find(digest))));
		expect(results).toEqual({ found: LIMIT + 1_000, service_unavailable: 1_500 - LIMIT - 1_000 });
	});
});
