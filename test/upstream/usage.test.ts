import { describe, expect, test } from "bun:test";
import { readUsage, UsageTally } from "../../src/upstream/usage.ts";

const record = (prompt: unknown, completion: unknown, more: object = {}) => ({
	prompt_tokens: prompt,
	completion_tokens: completion,
	...more,
});
const usage = (promptTokens: number, completionTokens: number, cachedTokens = 0, reasoningTokens = 0) => ({
	promptTokens,
	completionTokens,
	cachedTokens,
	reasoningTokens,
});

describe("a usage record", () => {
	test("is read with its details (cached and reasoning tokens)", () => {
		const details = { prompt_tokens_details: { cached_tokens: 4 }, completion_tokens_details: { reasoning_tokens: 2 } };
		expect(readUsage(record(9, 3, details))).toEqual(usage(9, 3, 4, 2));
		expect(readUsage(record(9, 3, { reasoning_tokens: 2, prompt_tokens_details: null }))).toEqual(usage(9, 3, 0, 2));
	});

	test("gets llama.cpp's cached tokens from `timings`", () => {
		expect(readUsage(record(9, 3), "inside", { cache_n: 4, prompt_n: 5 })).toEqual(usage(9, 3, 4));
		for (const odd of [null, 7, { cache_n: "4" }]) expect(readUsage(record(9, 3), "inside", odd)).toEqual(usage(9, 3));
	});

	test("is read under the field names of OpenAI's newer interface", () => {
		const newer = {
			input_tokens: 9,
			output_tokens: 3,
			total_tokens: 12,
			input_tokens_details: { cached_tokens: 4 },
			output_tokens_details: { reasoning_tokens: 2 },
		};
		expect(readUsage(newer)).toEqual(usage(9, 3, 4, 2));
		expect(readUsage({ ...newer, prompt_tokens: 0, completion_tokens: 0 })).toEqual(usage(9, 3, 4, 2));
		expect(readUsage({ ...record(9, 3), input_tokens: 0, output_tokens: 0 })).toEqual(usage(9, 3));
	});

	/** The prompt has 12 tokens; the completion has 2, or 342 with reasoning. */
	const REASONING = { completion_tokens_details: { reasoning_tokens: 340 } };
	test.each<[number, object, number, number | null, number, number | null]>([
		// Columns: completion, other fields, and for each way of counting the charged completion and its reasoning (null:
		// contradiction).
		[342, { ...REASONING, total_tokens: 354 }, 342, 340, 682, null],
		[342, REASONING, 342, 340, 682, 340],
		[342, { ...REASONING, total_tokens: 0 }, 342, 340, 682, 340],
		[342, { ...REASONING, total_tokens: 694 }, 342, null, 682, 340],
		[342, { ...REASONING, total_tokens: 100 }, 342, null, 682, null],
		[2, { ...REASONING, total_tokens: 354 }, 2, null, 342, 340],
		[2, { ...REASONING, total_tokens: 14 }, 2, null, 342, null],
		[2, REASONING, 2, null, 342, 340],
		[2, { total_tokens: 354 }, 2, null, 342, 340],
		[2, { total_tokens: 14 }, 2, 0, 2, 0],
	])(
		"of %d tokens with %j counts as %d (%p reasoning) if inside, %d (%p) if beside",
		(completion, more, inside, of, beside, ofBeside) => {
			for (const [reading, tokens, reasoning] of [
				["inside", inside, of],
				["beside", beside, ofBeside],
			] as const) {
				const found = readUsage(record(12, completion, more), reading);
				expect(found).toMatchObject({ promptTokens: 12, completionTokens: tokens });
				expect(found?.contradicts).toBe(reasoning === null ? true : undefined);
				if (reasoning !== null) expect(found?.reasoningTokens).toBe(reasoning);
				expect(found?.reasoningTokens).toBeLessThanOrEqual(tokens);
			}
		},
	);

	test("adds cached tokens that the server counts separately", () => {
		const details = { prompt_tokens_details: { cached_tokens: 90 }, total_tokens: 102 };
		expect(readUsage(record(10, 2, details))).toEqual(usage(100, 2, 90));
		expect(readUsage(record(100, 2, details))).toEqual(usage(100, 2, 90));
	});

	test("derives a missing count from the total", () => {
		const half = { cachedTokens: 0, reasoningTokens: 0, promptTokens: undefined, completionTokens: undefined };
		for (const unknown of [0, undefined, null, "9", -1, 1.5, Number.NaN, 1e15]) {
			expect(readUsage(record(unknown, 5))).toEqual({ ...half, completionTokens: 5 });
			expect(readUsage(record(unknown, 5, { total_tokens: 14 }))).toEqual(usage(9, 5));
		}
		for (const unknown of [undefined, null, "3", -1, 1.5, Number.NaN, 1e15]) {
			expect(readUsage(record(9, unknown))).toEqual({ ...half, promptTokens: 9 });
			expect(readUsage(record(9, unknown, { total_tokens: 14 }))).toEqual(usage(9, 5));
		}
		expect(readUsage(record(9, 0))).toEqual(usage(9, 0));
	});

	test("is undefined if it has no count", () => {
		expect(readUsage(record(0, 0))).toBeUndefined();
		expect(readUsage(record(0, 0, { total_tokens: 0 }))).toBeUndefined();
		expect(readUsage(record("9", "3"))).toBeUndefined();
		for (const odd of [null, undefined, 7, "x", [], {}]) expect(readUsage(odd)).toBeUndefined();
	});
});

const counts = (...of: Parameters<typeof record>) => readUsage(record(...of));

describe("the usage of a stream with the setting", () => {
	test("`last` is the last record for the whole answer that is not zero", () => {
		const tally = new UsageTally("last");
		tally.note(counts(0, 0), 0, true, 0);
		expect(tally.current()).toBeUndefined();
		tally.note(counts(9, 1), 0, true, 0);
		expect(tally.isFinal()).toBe(false);
		tally.note(counts(9, 5), undefined, false, 1);
		tally.note(counts(0, 0), undefined, false, 1);
		expect(tally.current()).toEqual(usage(9, 5));
		expect(tally.isFinal()).toBe(true);
	});

	test("`last` is final once the finish event has a usage record", () => {
		const tally = new UsageTally("last");
		tally.note(counts(9, 5), 0, true, 1);
		expect(tally.isFinal()).toBe(true);
	});

	test("`per_choice` is the latest cumulative record of each choice", () => {
		const tally = new UsageTally("per_choice");
		for (const [choice, tokens] of [
			[0, 1],
			[1, 1],
			[0, 2],
			[0, 3],
			[1, 2],
		] as const) {
			tally.note(counts(9, tokens), choice, true, 0);
		}
		expect(tally.current()).toEqual(usage(9, 5));
		expect(tally.isFinal()).toBe(false);
		tally.note(counts(9, 6), undefined, false, 1);
		expect(tally.current()).toEqual(usage(9, 6));
		expect(tally.isFinal()).toBe(true);
	});

	test("`sum` is the sum over the choices, with the prompt counted once", () => {
		const tally = new UsageTally("sum");
		tally.note(counts(9, 4, { prompt_tokens_details: { cached_tokens: 5 } }), undefined, false, 0);
		tally.note(counts(9, 7), undefined, false, 2);
		expect(tally.current()).toEqual(usage(9, 11, 5));
	});

	test("`sum` counts a repeated last record once", () => {
		const one = new UsageTally("sum");
		for (const tokens of [4, 4, 4]) one.note(counts(9, tokens), undefined, false, 1);
		expect(one.current()).toEqual(usage(9, 4));
		// A second choice's count that arrives before the end is not final either.
		const running = new UsageTally("sum");
		running.note(counts(9, 2), undefined, false, 0);
		running.note(counts(9, 4), undefined, false, 1);
		expect([running.current(), running.isFinal()]).toEqual([usage(9, 4), true]);
		const two = new UsageTally("sum");
		for (const [tokens, finished] of [
			[4, 1],
			[7, 2],
			[7, 2],
		] as const)
			two.note(counts(9, tokens), undefined, false, finished);
		expect(two.current()).toEqual(usage(9, 11));
	});

	describe("the usage of a completion with three prompts of two choices", () => {
		const cached = { prompt_tokens_details: { cached_tokens: 2 } };
		const noteAll = (tally: UsageTally, finished: number) => {
			for (let choice = 0; choice < 6; choice++) tally.note(counts(10 + choice, 3, cached), choice, true, finished);
		};

		test("counts each prompt once, and every choice", () => {
			const tally = new UsageTally("sum", 2);
			noteAll(tally, 6);
			expect(tally.current()).toEqual(usage(11 + 13 + 15, 18, 6));
			expect(tally.isFinal()).toBe(true);
		});

		test("is not final while the server sends running counts", () => {
			const tally = new UsageTally("per_choice", 2);
			noteAll(tally, 6);
			expect(tally.isFinal()).toBe(false);
		});

		test("uses the final record, which is in an event without choices", () => {
			for (const style of ["sum", "per_choice"] as const) {
				const tally = new UsageTally(style, 2);
				tally.note(counts(39, 17), undefined, false, 6);
				noteAll(tally, 6);
				expect(tally.current()).toEqual(usage(39, 17));
			}
		});
	});
});
