import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { Fault } from "../../src/base/fault.ts";
import { usageRecord } from "../../src/gateway/bill/bill.ts";
import { ChatEvents } from "../../src/gateway/generated-text.ts";
import { nanoUsd } from "../../src/money/nano-usd.ts";
import type { ChatChunk, FinishReason } from "../../src/upstream/chat/chat-answer.ts";
import { eventsOf } from "../support/raw-http.ts";

const HEAD = { id: "chatcmpl-1", createdS: 1_700_000_000, model: 'acme/"m"', object: "chat.completion.chunk" };
const USAGE = usageRecord({
	promptTokens: 9,
	completionTokens: 3,
	cachedTokens: 2,
	reasoningTokens: 1,
	units: 0,
	cost: nanoUsd(15_000),
	basis: "exact",
});

type Event = {
	id: string;
	object: string;
	created: number;
	model: string;
	choices: { index: number; delta: object; finish_reason: string | null }[];
	usage?: unknown;
	error?: unknown;
};

const chunk = (...choices: { index?: number; text?: string; finish?: FinishReason }[]): ChatChunk => ({
	choices: choices.map(({ index = 0, text, finish }) => ({
		index,
		delta: text === undefined ? {} : { content: text },
		finish_reason: finish ?? null,
	})),
	outputBytes: 0,
});
const parsed = (text: string) => eventsOf(text) as (Event | string)[];

test("a stream with usage requested has `usage: null`, then the usage at its end", () => {
	const events = new ChatEvents(HEAD, true);
	const all = parsed(
		events.chunks([chunk({ text: "a" })]) + events.chunks([chunk({ finish: "stop" })]) + events.end(USAGE),
	);
	const { createdS: created, ...head } = HEAD;
	expect(all).toEqual([
		{ ...head, created, choices: [{ index: 0, delta: { content: "a" }, finish_reason: null }], usage: null },
		{ ...head, created, choices: [{ index: 0, delta: {}, finish_reason: "stop" }], usage: null },
		{ ...head, created, choices: [], usage: USAGE },
		"[DONE]",
	]);
});

describe("a stream whose client did not request usage", () => {
	test.each([
		["chat.completion.chunk", { index: 0, delta: {}, finish_reason: null }],
		["text_completion", { text: "", index: 0, logprobs: null, finish_reason: null }],
	])("has each finish reason, then the usage with an empty choice (%s)", (object, empty) => {
		const events = new ChatEvents({ ...HEAD, object }, false);
		const text =
			events.chunks([chunk({ index: 0, text: "a" }, { index: 1, text: "b" })]) +
			events.chunks([chunk({ index: 1, finish: "stop" })]) +
			events.chunks([chunk({ index: 0, text: "c" }), chunk({ index: 0, finish: "length" })]) +
			events.end(USAGE);
		const all = parsed(text).slice(0, -1) as Event[];
		expect(all.map(({ choices }) => choices.map(({ index, finish_reason }) => [index, finish_reason]))).toEqual([
			[
				[0, null],
				[1, null],
			],
			[[1, "stop"]],
			[[0, null]],
			[[0, "length"]],
			[[0, null]],
		]);
		expect(all.map(({ usage }) => usage)).toEqual([...new Array(4).fill(undefined), USAGE]);
		expect(all.at(-1)?.choices).toEqual([empty as never]);
	});

	test("has every chunk once, in order, with one usage", () => {
		const choice = fc.record({
			index: fc.nat(2),
			text: fc.string(),
			finish: fc.option(fc.constantFrom<FinishReason>("stop", "length"), { nil: undefined as never, freq: 4 }),
		});
		fc.assert(
			fc.property(
				fc.array(fc.array(fc.array(choice, { minLength: 1, maxLength: 3 }), { minLength: 1, maxLength: 3 }), {
					maxLength: 8,
				}),
				fc.boolean(),
				(reads, asked) => {
					const events = new ChatEvents(HEAD, asked);
					const chunks = reads.map((read) => read.map((choices) => chunk(...choices)));
					const all = parsed(chunks.map((read) => events.chunks(read)).join("") + events.end(USAGE));
					expect(all.at(-1)).toBe("[DONE]");
					const sent = all.slice(0, -1) as Event[];
					const written = JSON.parse(JSON.stringify(chunks.flat().map(({ choices }) => choices))) as Event["choices"][];
					const last = asked ? [] : [{ index: 0, delta: {}, finish_reason: null }];
					expect(sent.flatMap(({ choices }) => choices)).toEqual([...written.flat(), ...last]);
					expect(sent.filter(({ usage }) => usage !== undefined && usage !== null)).toHaveLength(1);
					expect(sent.at(-1)?.usage).toEqual(USAGE);
				},
			),
			{ numRuns: 1_000 },
		);
	});
});

describe("a stream that fails after its first event", () => {
	test("sends an error event, then the usage, then [DONE]", () => {
		for (const asked of [true, false]) {
			const events = new ChatEvents(HEAD, asked);
			const before = events.chunks([chunk({ index: 0, finish: "stop" })]);
			const all = parsed(
				before + events.fail(new Fault("upstream_error", "The model server failed to respond."), USAGE),
			) as Event[];
			expect(all[0]?.choices[0]?.finish_reason).toBe("stop");
			expect(all[1]).toEqual({
				error: {
					message: "The model server failed to respond.",
					type: "server_error",
					param: null,
					code: "upstream_error",
				},
			} as never);
			expect(all[2]?.choices).toHaveLength(asked ? 0 : 1);
			expect(all[2]?.usage).toEqual(USAGE);
			expect(all[3] as unknown).toBe("[DONE]");
			expect(all).toHaveLength(4);
		}
	});

	test("has its error in the reader's language for the console", () => {
		const fault = new Fault("upstream_error", "The model server failed to respond.");
		const text = new ChatEvents(HEAD, true).fail(fault, USAGE, "de");
		expect(text).toContain('"message":"Der Modellserver konnte nicht antworten."');
	});

	test("output of a model cannot forge an event or a line of the stream", () => {
		const events = new ChatEvents(HEAD, true);
		const text = "\n\ndata: [DONE]\r\n\r\nevent: x\nid: 1\u2028\u0000";
		const all = parsed(events.chunks([chunk({ text })])) as Event[];
		expect(all).toHaveLength(1);
		expect(all[0]?.choices[0]?.delta).toEqual({ content: text });
	});
});
