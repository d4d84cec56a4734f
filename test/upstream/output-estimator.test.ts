import { expect, test } from "bun:test";
import { NO_QUANTITIES } from "../../src/admission/price.ts";
import { priceTokens } from "../../src/gateway/bill/bill.ts";
import { createOutputEstimator } from "../../src/upstream/replicas/output-estimator.ts";
import { createRandom } from "../support/random.ts";
import { modelOver } from "../support/upstream-catalog.ts";

const MEASURE = { textBytes: 4, messages: 1, images: 0, hasTools: false };

test("the estimator has no estimate before three streams with 64 tokens", () => {
	const worth = createOutputEstimator();
	const size = { events: 10, bytes: 50 };
	worth.learn(1_000, { events: 1_000, bytes: 5_000 });
	worth.learn(1_000, { events: 1_000, bytes: 5_000 });
	expect(worth.tokensOf(size)).toBeUndefined();
	worth.learn(1_000, { events: 1_000, bytes: 5_000 });
	expect(worth.tokensOf(size)).toBe(10);
	const short = createOutputEstimator();
	for (let time = 0; time < 10; time++) short.learn(2, { events: 2, bytes: 8 });
	expect(short.tokensOf(size)).toBeUndefined();
});

test("the estimator is exact for servers that send one token per event", () => {
	for (let seed = 0; seed < 50; seed++) {
		const random = createRandom(seed);
		const worth = createOutputEstimator();
		for (let stream = 0; stream < 40; stream++) {
			const events = Math.floor(random.between(20, 3_000));
			const bytes = Math.floor(events * random.between(2, 9));
			worth.learn(random.fraction() < 0.5 ? events : events + 1, { events, bytes });
		}
		for (let at = 0; at < 50; at++) {
			const events = Math.floor(random.between(1, 100_000));
			expect(worth.tokensOf({ events, bytes: Math.floor(events * random.between(1, 12)) })).toBe(events);
		}
	}
});

test("the estimator uses bytes for servers that send several tokens per event", () => {
	const random = createRandom(7);
	const worth = createOutputEstimator();
	for (let stream = 0; stream < 40; stream++) {
		const tokens = Math.floor(random.between(100, 900));
		worth.learn(tokens, { events: Math.ceil(tokens / random.between(2, 30)), bytes: tokens * 5 });
	}
	expect(worth.tokensOf({ events: 3, bytes: 500 })).toBe(100);
});

test("the estimator counts at most one token per byte", () => {
	const worth = createOutputEstimator();
	for (let stream = 0; stream < 40; stream++) worth.learn(5_000, { events: 10, bytes: 500 });
	expect(worth.tokensOf({ events: 10, bytes: 500 })).toBe(500);
});

test("one unusual stream changes the estimate only a little", () => {
	const worth = createOutputEstimator();
	for (let stream = 0; stream < 40; stream++) worth.learn(512, { events: 512, bytes: 2_048 });
	worth.learn(2_000_000, { events: 512, bytes: 100_000_000 });
	expect(worth.tokensOf({ events: 1_000, bytes: 4_000 })).toBeLessThan(1_150);
	worth.learn(1, { events: 1_000_000, bytes: 4_000_000 });
	expect(worth.tokensOf({ events: 1_000, bytes: 4_000 })).toBeGreaterThan(900);
});

test("an estimate never exceeds the bytes, twice the real size or the reservation", () => {
	const model = modelOver([]);
	for (let seed = 0; seed < 300; seed++) {
		const random = createRandom(seed);
		const worth = createOutputEstimator();
		const any = (most: number) => Math.floor(most ** random.fraction()) - 1;
		for (let stream = 0; stream < 30; stream++)
			worth.learn(any(2 ** 31), { events: any(1_000_000), bytes: any(10_000_000) });
		const chunks = any(10_000);
		const bytes = chunks + any(100_000);
		const maxOutputTokens = any(8_000);
		const tokensLikely = worth.tokensOf({ events: chunks, bytes });
		const request = { model, upperBound: { ...NO_QUANTITIES, completionTokens: maxOutputTokens }, choices: 1 };
		const { completionTokens, basis } = priceTokens(request, MEASURE, undefined, bytes, chunks, tokensLikely);
		const bySize = Math.max(chunks, Math.ceil(bytes / 4));
		expect(Number.isSafeInteger(completionTokens)).toBe(true);
		expect(completionTokens).toBeGreaterThanOrEqual(0);
		expect(completionTokens).toBeLessThanOrEqual(Math.min(2 * bySize, maxOutputTokens, Math.max(bytes, bySize)));
		if (tokensLikely !== undefined) expect(completionTokens).toBeLessThanOrEqual(Math.min(tokensLikely, bytes));
		expect(basis).toBe("estimated");
	}
});
