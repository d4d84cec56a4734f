/** Estimates of which prompts a replica has cached, and of when it starts the next prompt. */
import { describe, expect, test } from "bun:test";
import { createPrefill } from "../../src/upstream/replicas/prefill.ts";
import { indexEntriesFor, PrefixIndex } from "../../src/upstream/replicas/prefix-index.ts";
import { charsOfBlocks, routedPrompt } from "../../src/upstream/replicas/prompt-prefix.ts";
import { createRandom } from "../support/random.ts";
import { createManualClock } from "../support/upstream-clock.ts";

const random = createRandom(53);
const textOf = (chars: number) => Array.from({ length: chars / 32 }, () => random.uuid().slice(0, 32)).join("");
const promptOf = (text: string, { seed = 1n, streamed = true } = {}) => routedPrompt(text, seed, streamed);

describe("the hashes of a prompt", () => {
	test("are equal up to the first block that differs", () => {
		const text = textOf(64_000);
		const whole = promptOf(text).hashes;
		expect(whole.length).toBe(27);
		for (const at of [0, 5_000, 16_500, 57_400]) {
			const other = promptOf(`${text.slice(0, at)}!${text.slice(at + 1)}`).hashes;
			const first = whole.findIndex((hash, block) => hash !== other[block]);
			expect(charsOfBlocks(first)).toBeLessThanOrEqual(at);
			expect(charsOfBlocks(first + 1)).toBeGreaterThan(at);
			expect(whole.subarray(first).some((hash, nth) => hash === other[first + nth])).toBe(false);
		}
		expect(promptOf(text.slice(0, 30_000)).hashes).toEqual(whole.subarray(0, 19));
	});

	test("differ with another seed", () => {
		const text = textOf(16_000);
		const other = promptOf(text, { seed: 2n }).hashes;
		expect(promptOf(text).hashes.some((hash, block) => hash === other[block])).toBe(false);
	});

	test("are at most 1,024 for the longest prompt", () => {
		expect(promptOf("x".repeat(64_000_000)).hashes.length).toBe(1_024);
	});
});

describe("the index of prompts in a replica's cache", () => {
	test("takes at most 32 MB for any number of replicas", () => {
		for (const replicas of [1, 2, 41, 43, 1_000, 20_000, 100_000]) {
			expect(indexEntriesFor(replicas) * 12 * replicas).toBeLessThanOrEqual(32 * 1024 * 1024);
			expect(indexEntriesFor(replicas) % 8).toBe(0);
		}
		expect(indexEntriesFor(8)).toBe(65_536);
	});

	test("drops the least recently used blocks when it is full", () => {
		const index = new PrefixIndex();
		index.resize(1_024);
		const prompts = Array.from({ length: 400 }, () => promptOf(textOf(8_192)).hashes);
		for (const [nth, hashes] of prompts.entries()) {
			if (nth % 20 === 0) index.add(prompts[0] as Uint32Array);
			index.add(hashes);
		}
		expect(index.cachedBlocks(prompts[0] as Uint32Array)).toBe(8);
		expect(index.cachedBlocks(prompts[10] as Uint32Array)).toBe(0);
		expect(index.cachedBlocks(prompts.at(-1) as Uint32Array)).toBe(8);
	});

	test("learns the server's capacity from reported cached tokens", () => {
		for (const kept of [20, 60]) {
			const index = new PrefixIndex();
			const prompts = Array.from({ length: 150 }, () => promptOf(textOf(8_192)));
			// The simulated server keeps the prompts that were used last.
			const cache = new Set<number>();
			let wrong = 0;
			for (let call = 0; call < 4_000; call += 1) {
				const at = Math.floor(random.fraction() ** 3 * prompts.length);
				const { hashes, chars } = prompts[at] as (typeof prompts)[0];
				const found = index.add(hashes);
				const isCached = cache.delete(at);
				cache.add(at);
				for (const oldest of cache) if (cache.size > kept) cache.delete(oldest);
				index.learn(found, chars, Number(isCached));
				if (call > 1_000 && found.blocks > 0 !== isCached) wrong += 1;
			}
			expect(wrong / 3_000).toBeLessThan(0.12);
		}
	});
});

describe("the estimated wait of a replica", () => {
	const setUp = () => {
		const clock = createManualClock();
		const prefill = createPrefill(clock);
		const send = (chars: number, streamed = true) => prefill.begin(promptOf(textOf(chars), { streamed }));
		/** The simulated replica takes 1 ms per 10 characters. */
		const learn = () => {
			const sent = send(10_240);
			clock.advance(1_024);
			prefill.started(sent);
		};
		return { clock, prefill, send, learn };
	};

	test("is the time for the uncached characters of prompts without a first token", () => {
		const { clock, prefill, send, learn } = setUp();
		learn();
		expect(prefill.waitMs()).toBe(0);
		const [one] = [send(5_120), send(10_240)];
		expect(prefill.waitMs()).toBeCloseTo(1_536);
		clock.advance(512);
		prefill.started(one);
		expect(prefill.waitMs()).toBeCloseTo(1_024);
		const again = prefill.begin(one.prompt);
		expect(again.uncachedChars).toBe(0);
		expect(prefill.waitMs()).toBeCloseTo(1_024);
	});

	test("counts a prompt whose answer is not streamed only for its estimated time", () => {
		const { clock, prefill, send, learn } = setUp();
		learn();
		send(10_240, false);
		clock.advance(5_000);
		expect(prefill.waitMs()).toBe(0);
	});

	test("grows while a stream's first token is overdue", () => {
		const { clock, prefill, send, learn } = setUp();
		learn();
		send(1_024);
		clock.advance(60_000);
		expect(prefill.waitMs()).toBe(30_000);
	});

	test("excludes a prompt that ended without a first token", () => {
		const { clock, prefill, send, learn } = setUp();
		learn();
		const [one, other] = [send(5_120), send(10_240)];
		prefill.ended(one, false, undefined);
		expect(prefill.waitMs()).toBeCloseTo(1_024);
		prefill.ended(other, false, undefined);
		clock.advance(60_000);
		expect(prefill.waitMs()).toBe(0);
	});

	test("excludes a prompt that ended before an earlier prompt started", () => {
		const { clock, prefill, send, learn } = setUp();
		learn();
		const [one, other] = [send(10_240), send(5_120)];
		prefill.ended(other, false, undefined);
		clock.advance(1_024);
		prefill.started(one);
		expect(prefill.waitMs()).toBe(0);
		// The idle time before a prompt does not count as its processing time.
		clock.advance(600_000);
		const next = send(10_240);
		expect(prefill.waitMs()).toBeCloseTo(1_024);
		clock.advance(1_024);
		prefill.started(next);
		expect(1 / prefill.msPerChar()).toBeCloseTo(10);
	});
});
