import { expect, test } from "bun:test";
import fc from "fast-check";
import { ChatEvents } from "../../src/gateway/generated-text.ts";
import type { UpstreamFailure } from "../../src/upstream/call/failure.ts";
import { ChatReader } from "../../src/upstream/chat/chat-reader.ts";
import { DIALECTS } from "../../src/upstream/dialects.ts";
import { LONG } from "../support/long-form.ts";

const HEAD = { id: "chatcmpl-1", createdS: 1_700_000_000, model: "m", object: "chat.completion.chunk" };
/** Makes an event too long for the fast path. */
const PADDING = " ".repeat(5_000);

/** Relays events as the gateway would, and returns their bytes and counts. */
function relayOf(includeUsage: boolean, padding: string) {
	const reader = new ChatReader(DIALECTS.openai);
	const events = new ChatEvents(HEAD, includeUsage);
	let plain = 0;
	return {
		plain: () => plain,
		of(payload: string): unknown {
			try {
				const chunk = reader.accept(payload + padding);
				if (chunk?.choicesText !== undefined) plain += 1;
				const text = chunk === undefined ? "" : events.chunks([chunk]);
				const { choices, outputBytes, about, sources } = chunk ?? {};
				const ends = [reader.ended(), reader.finished(), reader.usageIsFinal()];
				return { text, choices, outputBytes, about, sources, ends, usage: reader.usage() };
			} catch (error) {
				return (error as UpstreamFailure).kind;
			}
		},
	};
}

const written = fc.oneof(
	{ weight: 6, arbitrary: fc.string({ maxLength: 6 }).map((text) => JSON.stringify(text).slice(1, -1)) },
	{ weight: 3, arbitrary: fc.stringMatching(/^[a-z é漢]{1,8}$/) },
	fc.string({ unit: "binary", maxLength: 4 }),
	fc.constantFrom(
		"",
		"🙂",
		"\\n",
		"\\ud800",
		"\ud800",
		"\u2028",
		"\u007f",
		"\t",
		'"',
		"\\",
		'a","refusal":"b',
		'a"},"finish_reason":"stop"}],"x":[{"y":{"z":"b',
		'"},"usage":{"prompt_tokens":1},"x":{"y":"',
	),
);

const mostly = <Value>(usual: Value, ...odd: Value[]) =>
	fc.oneof({ weight: 3 * odd.length, arbitrary: fc.constant(usual) }, ...odd.map((value) => fc.constant(value)));

const envelope = fc
	.record({
		id: mostly("c", 'say "content":"', "content", "\\"),
		index: mostly<number | undefined>(0, 1, 7, undefined, -1),
		space: mostly<number | undefined>(undefined, 1),
		more: mostly<object>({}, { content: "x" }, { error: { message: "no" } }, { usage: null }),
		about: mostly<object>(
			{},
			{ system_fingerprint: "fp_a" },
			{ system_fingerprint: "fp_b" },
			{ citations: ["http://a"] },
		),
		usage: mostly<object>({}, { usage: { prompt_tokens: 3, completion_tokens: 2 } }),
		delta: mostly<object>(
			{},
			{ role: "assistant" },
			{ refusal: "no" },
			{ reasoning_content: "so" },
			{ tool_calls: [{ index: 0, id: "call_1", function: { name: "f" } }] },
		),
		choice: mostly<object>(
			{},
			{ finish_reason: null },
			{ logprobs: null },
			{ logprobs: { content: [{ token: "a" }] } },
			{ finish_reason: "stop" },
		),
		further: mostly<object[]>(
			[],
			[{}],
			[{ index: 1, delta: { role: "assistant" } }],
			[{ index: 1, delta: { refusal: "b" } }],
		),
	})
	.map(({ id, index, space, more, about, usage, delta, choice, further }) => {
		const event = {
			id,
			choices: [{ index, delta: { ...delta, content: "@" }, ...choice }, ...further],
			...more,
			...about,
			...usage,
		};
		const [before = "", after = ""] = JSON.stringify(event, null, space).split("@");
		return (text: string) => before + text + after;
	});

/** Streams in which most events have the same format as an earlier event. */
const stream = fc
	.array(fc.tuple(envelope, fc.array(written, { minLength: 1, maxLength: 12 })), { minLength: 1, maxLength: 6 })
	.chain((parts) => fc.tuple(fc.constant(parts), fc.boolean(), fc.boolean()))
	.map(([parts, includeUsage, mixed]) => {
		const payloads = parts.flatMap(([of, texts]) => texts.map(of));
		// Repeats the events in reverse order, so that their formats alternate.
		return { includeUsage, payloads: [...payloads, ...(mixed ? payloads.toReversed() : []), "[DONE]"] };
	});

test("the fast path for stream events gives the same bytes and counts as parsing", () => {
	let plain = 0;
	let all = 0;
	fc.assert(
		fc.property(stream, ({ includeUsage, payloads }) => {
			const told = relayOf(includeUsage, "");
			const parsed = relayOf(includeUsage, PADDING);
			for (const payload of payloads) expect(told.of(payload)).toEqual(parsed.of(payload));
			expect(parsed.plain()).toBe(0);
			plain += told.plain();
			all += payloads.length;
		}),
		{ numRuns: LONG ? 2_000 : 400 },
	);
	expect(plain).toBeGreaterThan(all / 20);
});

test.each([
	[
		"an earlier member of the same name and text",
		'{"content":"a","choices":[{"delta":{"content":"a"}}]}',
		'{"content":"b",',
	],
	[
		"a name that ends alike, and its own name written otherwise",
		'{"x\\"content":"a","choices":[{"delta":{"con\\u0074ent":"a"}}]}',
		'{"x\\"content":"b",',
	],
	[
		"logprobs",
		'{"choices":[{"delta":{"content":"a"},"logprobs":{"refusal":[{"token":"a","logprob":-1}]}}]}',
		'{"choices":[{"delta":{"content":"b"},',
	],
])("the fast path for stream events leaves an event with %s to the parser", (_, event, other) => {
	const told = relayOf(false, "");
	const parsed = relayOf(false, PADDING);
	const next = other + event.slice(other.length);
	for (const payload of [event, event, next, next]) expect(told.of(payload)).toEqual(parsed.of(payload));
	expect(told.plain()).toBe(0);
});

test("the fast path is not tried again for a server whose events always differ", () => {
	const relay = relayOf(false, "");
	const event = (id: number) => `{"id":"${id}","choices":[{"index":0,"delta":{"content":"a"}}]}`;
	for (let id = 0; id < 10; id += 1) relay.of(event(id));
	for (let nth = 0; nth < 10; nth += 1) relay.of(event(10));
	expect(relay.plain()).toBe(0);
});
