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

test("a stream has every chunk once, in order, with one usage at its end", () => {
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

	test("has its error in the reader's language if the console requested it", () => {
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
