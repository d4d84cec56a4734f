import { describe, expect, test } from "bun:test";
import type { Fault } from "../../src/base/fault.ts";
import type { KeyDigest } from "../../src/keys/digest.ts";
import { createFailedAttempts } from "../../src/keys/failed-attempts.ts";
import type { KeyEntry } from "../../src/keys/key-entry.ts";
import { createLookUps } from "../../src/keys/look-ups.ts";
import { manualClock } from "./manual-clock.ts";

const LIMIT = 60;
const HERE = "192.0.2.1";

/** Look-ups over a table in which only what begins with "good" exists; `loads` are the questions that reached it. */
function setUp(failuresPerMinuteMax = 1_000_000) {
	const clock = manualClock();
	const loads: string[] = [];
	let underWay = 0;
	let mostUnderWay = 0;
	const failedAttempts = createFailedAttempts({ clock }, { perMinuteMax: LIMIT });
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
	const lookUps = createLookUps({ keyring, failedAttempts, clock }, { failuresPerMinuteMax });
	const find = (digest: string, address = HERE) =>
		lookUps.find(digest as KeyDigest, address).then(
			() => "found",
			(error: Fault) => error.code as string,
		);
	return { clock, loads, find, mostUnderWay: () => mostUnderWay };
}

const many = (count: number, name: string) => Array.from({ length: count }, (_, at) => `${name}${at}`);
const counted = (results: readonly string[]) =>
	Object.fromEntries([...new Set(results)].sort().map((code) => [code, results.filter((one) => one === code).length]));

describe("keys that do not exist", () => {
	test("cost the database at most the limit of their address, however many come at once", async () => {
		const { find, loads } = setUp();
		const results = await Promise.all(many(900, "bad").map((digest) => find(digest)));
		expect(loads.length).toBeLessThanOrEqual(LIMIT + 1);
		expect(counted(results)).toEqual({ invalid_api_key: LIMIT, rate_limit_exceeded: 900 - LIMIT });
		expect(counted(await Promise.all(many(900, "more").map((digest) => find(digest))))).toEqual({
			rate_limit_exceeded: 900,
		});
		expect(loads.length).toBeLessThanOrEqual(LIMIT + 1);
	});

	test("of many addresses together cost it at most the limit of all; then everybody hears 503 until the minute is over", async () => {
		const { clock, find, loads } = setUp(200);
		const results = await Promise.all(
			many(3_000, "bad").map((digest, at) => find(digest, `10.0.${at >> 8}.${at & 255}`)),
		);
		// What was under way when the limit was reached still counts.
		expect(counted(results).service_unavailable).toBeUndefined();
		const after = loads.length;
		expect(counted(await Promise.all(many(50, "late").map((digest, at) => find(digest, `10.9.0.${at}`))))).toEqual({
			service_unavailable: 50,
		});
		expect(loads.length).toBe(after);
		clock.advance(60_000);
		expect(await find("good", "10.9.0.1")).toBe("found");
	});
});

describe("keys that exist", () => {
	test("of one address are all found, never more at once than it may still fail", async () => {
		const { find, mostUnderWay } = setUp();
		const results = await Promise.all(many(500, "good").map((digest) => find(digest)));
		expect(counted(results)).toEqual({ found: 500 });
		expect(mostUnderWay()).toBe(LIMIT);
	});

	test("get in from an address that failed too often, one a second", async () => {
		const { clock, find } = setUp();
		await Promise.all(many(900, "bad").map((digest) => find(digest)));
		clock.advance(1_000);
		expect(await find("good")).toBe("found");
		expect(await find("good too")).toBe("rate_limit_exceeded");
		clock.advance(1_000);
		expect(await find("good too")).toBe("found");
	});

	test("of another address notice nothing of it", async () => {
		const { find } = setUp();
		const flood = Promise.all(many(900, "bad").map((digest) => find(digest)));
		expect(await find("good", "192.0.2.2")).toBe("found");
		await flood;
	});

	test("wait in bounded number", async () => {
		const { find } = setUp();
		const results = counted(await Promise.all(many(1_500, "good").map((digest) => find(digest))));
		expect(results).toEqual({ found: LIMIT + 1_000, service_unavailable: 1_500 - LIMIT - 1_000 });
	});
});
