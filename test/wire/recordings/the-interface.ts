import { call, eventsOf, type Recording, recording, usage } from "../recording.ts";

type Rest = Parameters<typeof recording> extends [string, unknown, ...infer More] ? More : never;

/** The interface's own servers: padding, tiers, refusals with logprobs, speech. */
const HEAD = {
	id: "chatcmpl-Bx",
	object: "chat.completion.chunk",
	created: 1_767_225_600,
	model: "vendor-model",
	service_tier: "default",
	system_fingerprint: "fp_44709d6fcb",
};
const { event, chunk, count } = eventsOf(HEAD, { usage: null, obfuscation: "kX3" });
const openai = (...rest: Rest) => recording("the interface", "openai", ...rest);

export const THE_INTERFACE: readonly Recording[] = [
	openai(
		"text",
		[
			chunk({ role: "assistant", content: "", refusal: null }, null, {}, { logprobs: null }),
			chunk({ content: "Rain" }, null, {}, { logprobs: null }),
			chunk({ content: " later." }, null, {}, { logprobs: null }),
			chunk({}, "stop", {}, { logprobs: null }),
			count(13, 4, { prompt_tokens_details: { cached_tokens: 0, audio_tokens: 0 } }),
		],
		{ text: "Rain later.", finish: "stop", usage: [13, 4] },
	),
	openai(
		"lines that end in a single CR",
		[chunk({ role: "assistant", content: "Rain." }), chunk({}, "stop"), count(13, 3)],
		{ text: "Rain.", finish: "stop", usage: [13, 3] },
		{ eol: "\r" },
	),
	openai(
		"a refusal",
		[
			chunk({ role: "assistant", content: "", refusal: null }),
			chunk(
				{ refusal: "I would" },
				null,
				{},
				{
					logprobs: { content: null, refusal: [{ token: "I would", logprob: -0.1, bytes: null, top_logprobs: [] }] },
				},
			),
			chunk({ refusal: " rather not." }),
			chunk({}, "stop"),
			count(13, 5),
		],
		{ refusal: "I would rather not.", logprobs: "I would", finish: "stop", usage: [13, 5] },
	),
	openai("a filter", [chunk({ role: "assistant", content: "Ra" }), chunk({}, "content_filter"), count(13, 1)], {
		text: "Ra",
		finish: "content_filter",
		usage: [13, 1],
	}),
	openai(
		"a tool of a free form",
		[
			chunk({
				role: "assistant",
				content: null,
				tool_calls: [{ index: 0, id: "call_f", type: "function", function: { name: "umbrella", arguments: "" } }],
			}),
			chunk({ tool_calls: [call(0, undefined, undefined, "{}")] }),
			chunk({}, "tool_calls"),
			count(13, 7),
		],
		{ tools: ["call_f umbrella({})"], finish: "tool_calls", usage: [13, 7] },
	),
	openai(
		"speech",
		[
			chunk({ role: "assistant", content: null, audio: { id: "audio_1", transcript: "Rain" } }),
			chunk({ audio: { data: "AAECAw==" } }),
			chunk({ audio: { transcript: " later." } }),
			chunk({ audio: { data: "BAUG", expires_at: 1_767_229_200 } }),
			chunk({}, "stop"),
			count(13, 20),
		],
		{ spoken: "Rain later.", finish: "stop", usage: [13, 20] },
	),
	openai(
		"a count that comes early, and none at the end",
		[
			chunk({ role: "assistant", content: "" }, null, { usage: usage(13, 1) }),
			chunk({ content: "Rain" }),
			chunk({ content: " later." }),
			chunk({}, "stop"),
		],
		{ text: "Rain later.", finish: "stop" },
		{ directly: { usage: [13, 1] } },
	),
	openai(
		"a text completion",
		[
			event([{ text: " drizzle", index: 0, logprobs: null, finish_reason: null }]),
			event([{ text: "", index: 0, logprobs: null, finish_reason: "stop" }]),
			count(13, 2),
		],
		{ text: " drizzle", finish: "stop", usage: [13, 2] },
		{ endpoint: "completions" },
	),
];

/** Perplexity: its sources on each event. */
const p = eventsOf({ id: "p1", object: "chat.completion.chunk", created: 1_767_225_600, model: "sonar" });
const SOURCES = {
	citations: ["https://example.org/rain", "file:///etc/passwd"],
	search_results: [{ title: "Rain", url: "https://example.org/rain" }],
};
/** Gemini's form of the interface: signed tools, thoughts in the total alone. */
const n = eventsOf({ id: "n1", object: "chat.completion.chunk", created: 1_767_225_600, model: "vendor-model" });

export const OTHERS: readonly Recording[] = [
	recording(
		"Perplexity",
		"openai",
		"sources on each event",
		[
			p.chunk({ role: "assistant", content: "Rain" }, null, { ...SOURCES, usage: usage(5, 1) }),
			p.chunk({ role: "assistant", content: " [1]." }, null, { ...SOURCES, usage: usage(5, 3) }),
			p.chunk({ role: "assistant", content: "" }, "stop", {
				...SOURCES,
				usage: { ...usage(5, 3), cost: { total_cost: 0.005 } },
			}),
		],
		{ text: "Rain [1].", finish: "stop", usage: [5, 3], sources: ["https://example.org/rain"] },
		{ directly: { sources: SOURCES.citations } },
	),
	recording(
		"Gemini",
		"openai",
		"a signed tool, and thoughts that only the total counts",
		[
			n.chunk(
				{
					role: "assistant",
					tool_calls: [
						call(0, "function-call-1", "rain", "{}", { extra_content: { google: { thought_signature: "c2ln" } } }),
					],
				},
				"tool_calls",
				{ usage: { prompt_tokens: 20, completion_tokens: 6, total_tokens: 96 } },
			),
		],
		{
			tools: ["function-call-1 rain({})"],
			signed: '[{"google":{"thought_signature":"c2ln"}}]',
			finish: "tool_calls",
			usage: [20, 76],
		},
		{ directly: { usage: [20, 6] } },
	),
];
