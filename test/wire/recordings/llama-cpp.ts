import { call, eventsOf, type Recording, recording, usage } from "../recording.ts";

/** The server of llama.cpp: the opening has no content, each choice ends with a record of its own, comments in between. */
const HEAD = {
	id: "chatcmpl-Qx4",
	object: "chat.completion.chunk",
	created: 1_767_225_600,
	model: "/models/secret.gguf",
	system_fingerprint: "b6123-5f1e",
};
const { event, chunk, of, count } = eventsOf(HEAD);
const TIMINGS = { timings: { cache_n: 3, prompt_n: 5, prompt_ms: 11.5, predicted_n: 4 } };
const opening = chunk({ role: "assistant", content: null });
const it = (...rest: Parameters<typeof recording> extends [string, unknown, ...infer Rest] ? Rest : never) =>
	recording("llama.cpp", "llama.cpp", ...rest);

export const LLAMA_CPP: readonly Recording[] = [
	it(
		"text, with comments while the prompt is read",
		[
			":",
			opening,
			":",
			chunk({ content: "Flint" }),
			chunk({ content: " and steel." }),
			chunk({}, "stop"),
			count(8, 4, { prompt_tokens_details: { cached_tokens: 3 } }, TIMINGS),
		],
		{ text: "Flint and steel.", finish: "stop", usage: [8, 4] },
	),
	it(
		"an older build with its count on the finish",
		[opening, chunk({ content: "Flint." }), chunk({}, "stop", { usage: usage(8, 3), ...TIMINGS })],
		{ text: "Flint.", finish: "stop", usage: [8, 3] },
	),
	it(
		"how far the prompt is, and what it was rendered to",
		[
			event([], { prompt_progress: { total: 8, processed: 4 } }),
			chunk({ role: "assistant", content: null }, null, { prompt_progress: { total: 8, processed: 8 } }),
			chunk({ content: "Steel." }, null, { __verbose: { prompt: "<s>secret" } }),
			chunk({}, "stop"),
			count(8, 3, {}, { ...TIMINGS, __verbose: { prompt: "<s>secret" } }),
		],
		{ text: "Steel.", finish: "stop", usage: [8, 3] },
	),
	it(
		"reasoning, then a tool whose arguments come by the character",
		[
			opening,
			chunk({ reasoning_content: "Strike" }),
			chunk({ reasoning_content: " twice." }),
			chunk({ tool_calls: [call(0, "Zk81", "strike", "{")] }),
			...['"', "times", '"', ":", "2", "}"].map((piece) =>
				chunk({ tool_calls: [call(0, undefined, undefined, piece)] }),
			),
			chunk({}, "tool_calls"),
			count(8, 14, {}, TIMINGS),
		],
		{ reasoning: "Strike twice.", tools: ['Zk81 strike({"times":2})'], finish: "tool_calls", usage: [8, 14] },
	),
	it(
		"two choices, a record for each",
		[
			of(0, { role: "assistant", content: null }),
			of(1, { role: "assistant", content: null }),
			of(0, { content: "Spark" }),
			of(1, { content: "Ember" }),
			of(0, {}, "stop"),
			count(8, 2),
			of(1, {}, "stop"),
			count(8, 3),
		],
		{
			choices: [
				{ text: "Spark", finish: "stop" },
				{ text: "Ember", finish: "stop" },
			],
			usage: [8, 5],
		},
		// Who reads the last record sees one choice's.
		{ n: 2, directly: { usage: [8, 3] } },
	),
	it(
		"a context that is full in the middle",
		[
			opening,
			chunk({ content: "Flint" }),
			{ error: { code: 500, message: "the context size 4096 of slot 0 is exceeded", type: "server_error" } },
		],
		{ text: "Flint", finish: null },
		{ fails: "context_length", done: false },
	),
	it(
		"a very old build whose error is a field that nobody reads",
		[opening, chunk({ content: "Flint" }), 'error: {"code":500,"message":"slot unavailable"}'],
		{ text: "Flint", finish: null },
		{ fails: "died", done: false },
	),
	it(
		"a text completion, its count on the finish whatever was asked",
		[
			event([{ index: 0, text: " tinder", logprobs: null, finish_reason: null }]),
			event([{ index: 0, text: "", logprobs: null, finish_reason: "stop" }], { usage: usage(8, 2), ...TIMINGS }),
		],
		{ text: " tinder", finish: "stop", usage: [8, 2] },
		{ endpoint: "completions" },
	),
];

const PYTHON = { id: "chatcmpl-2b", object: "chat.completion.chunk", created: 1_767_225_600, model: "/srv/model.gguf" };
const python = eventsOf(PYTHON);
const its = (...rest: Parameters<typeof recording> extends [string, unknown, ...infer Rest] ? Rest : never) =>
	recording("llama-cpp-python", "openai", ...rest);

/** llama-cpp-python's server: no counts in streams, lines ended by CRLF, and a stream that another request breaks off. */
export const LLAMA_CPP_PYTHON: readonly Recording[] = [
	its(
		"text without a count",
		[
			python.chunk({ role: "assistant" }, null, {}, { logprobs: null }),
			python.chunk({ content: "Chalk" }, null, {}, { logprobs: null }),
			python.chunk({ content: " cliffs." }, null, {}, { logprobs: null }),
			python.chunk({}, "stop", {}, { logprobs: null }),
		],
		{ text: "Chalk cliffs.", finish: "stop" },
		{ eol: "\r\n" },
	),
	its(
		"a stream that another request interrupted",
		[
			python.chunk({ role: "assistant" }, null, {}, { logprobs: null }),
			python.chunk({ content: "Chalk" }, null, {}, { logprobs: null }),
		],
		{ text: "Chalk", finish: null },
		{ eol: "\r\n", fails: "died" },
	),
	its(
		"a function in both of its forms",
		[
			python.chunk({ role: null, content: null, function_call: { name: "dig", arguments: '{"m"' } }, null),
			python.chunk(
				{
					function_call: { name: "dig", arguments: ": 3}" },
					tool_calls: [call(0, "call__0_dig_cmpl-1", "dig", '{"m": 3}')],
				},
				null,
			),
			python.chunk({}, "tool_calls"),
		],
		{ tools: ['call__0_dig_cmpl-1 dig({"m": 3})'], finish: "tool_calls" },
	),
];
