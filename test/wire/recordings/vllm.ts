import { call, eventsOf, type Recording, recording, usage } from "../recording.ts";

/** vLLM: running usage on each event where asked for, `stop_reason` on the finish, errors as an event and `[DONE]`. */
const HEAD = { id: "chatcmpl-7f0c2b", object: "chat.completion.chunk", created: 1_767_225_600, model: "served-name" };
const { event, chunk, of, count } = eventsOf(HEAD);
const opening = chunk({ role: "assistant", content: "" }, null, { usage: usage(11, 0) });
const running = (completion: number) => ({ usage: usage(11, completion) });
const it = (...rest: Parameters<typeof recording> extends [string, unknown, ...infer Rest] ? Rest : never) =>
	recording("vLLM", "vllm", ...rest);

export const VLLM: readonly Recording[] = [
	it(
		"text, a count on each event",
		[
			opening,
			chunk({ content: "The heron" }, null, running(2)),
			chunk({ content: " waits." }, null, running(4)),
			chunk({ content: "" }, "stop", running(5), { stop_reason: null }),
			count(11, 5),
		],
		{ text: "The heron waits.", finish: "stop", usage: [11, 5] },
	),
	it(
		"text of many bytes, cut at its limit",
		[
			opening,
			chunk({ content: "Über die Brücke läuft" }, null, running(6)),
			chunk({ content: " ein 🦊 — 狐狸" }, null, running(12)),
			chunk({ content: "" }, "length", running(12), { stop_reason: null }),
			count(11, 12),
		],
		{ text: "Über die Brücke läuft ein 🦊 — 狐狸", finish: "length", usage: [11, 12] },
	),
	it(
		"reasoning under its older name",
		[
			opening,
			chunk({ reasoning_content: "Two and" }, null, running(2)),
			chunk({ reasoning_content: " two." }, null, running(4)),
			chunk({ content: "Four" }, null, running(5)),
			chunk({}, "stop", running(6), { stop_reason: null }),
			count(11, 6, { completion_tokens_details: { reasoning_tokens: 4 } }),
		],
		{ text: "Four", reasoning: "Two and two.", finish: "stop", usage: [11, 6] },
	),
	it(
		"reasoning under its newer name, and nothing after it",
		[
			opening,
			chunk({ reasoning: "Two and" }, null, running(2)),
			chunk({ reasoning: " two…" }, null, running(4)),
			chunk({}, "length", running(4), { stop_reason: null }),
			count(11, 4),
		],
		{ reasoning: "Two and two…", finish: "length", usage: [11, 4] },
	),
	it(
		"two tools at once",
		[
			opening,
			chunk({ tool_calls: [call(0, "chatcmpl-tool-a1", "tide", "")] }, null, running(5)),
			chunk({ tool_calls: [call(0, undefined, undefined, '{"port": "Oost')] }, null, running(8)),
			chunk({ tool_calls: [call(0, undefined, undefined, 'ende"}')] }, null, running(9)),
			chunk({ tool_calls: [call(1, "chatcmpl-tool-b2", "wind", "")] }, null, running(11)),
			chunk({ tool_calls: [call(1, undefined, undefined, "{}")] }, null, running(12)),
			chunk({ content: "" }, "tool_calls", running(13), { stop_reason: 128_008 }),
			count(11, 13),
		],
		{
			tools: ['chatcmpl-tool-a1 tide({"port": "Oostende"})', "chatcmpl-tool-b2 wind({})"],
			finish: "tool_calls",
			usage: [11, 13],
		},
	),
	it(
		"logprobs",
		[
			opening,
			chunk({ content: "Ebb" }, null, running(1), {
				logprobs: {
					content: [
						{
							token: "Ebb",
							logprob: -0.01,
							bytes: [69, 98, 98],
							top_logprobs: [
								{ token: "Ebb", logprob: -0.01, bytes: [69, 98, 98] },
								{ token: "Low", logprob: -4.7, bytes: [76, 111, 119] },
							],
						},
					],
				},
			}),
			chunk({ content: "." }, "stop", running(2), {
				logprobs: { content: [{ token: ".", logprob: -0.2, bytes: [46], top_logprobs: [] }] },
				stop_reason: null,
			}),
			count(11, 2),
		],
		{ text: "Ebb.", logprobs: "Ebb.", finish: "stop", usage: [11, 2] },
	),
	it(
		"two choices, one after the other's word",
		[
			of(0, { role: "assistant", content: "" }, null, running(0)),
			of(1, { role: "assistant", content: "" }, null, running(0)),
			of(0, { content: "Left" }, null, running(1)),
			of(1, { content: "Right" }, null, running(1)),
			of(1, { content: " bank" }, null, running(2)),
			of(0, { content: "" }, "stop", running(2)),
			of(1, { content: "" }, "stop", running(3)),
			count(11, 5),
		],
		{
			choices: [
				{ text: "Left", finish: "stop" },
				{ text: "Right bank", finish: "stop" },
			],
			usage: [11, 5],
		},
		{ n: 2 },
	),
	it(
		"what it keeps of the prompt and of its own state",
		[
			chunk({ role: "assistant", content: "" }, null, {
				prompt_token_ids: [1, 2, 3],
				prompt_text: "<s>secret",
				kv_transfer_params: { host: "10.0.0.7" },
				usage: usage(11, 0),
			}),
			chunk(
				{ content: "Dry." },
				null,
				{ ...running(2), metrics: { queue: 3 } },
				{ token_ids: [7], routed_experts: [1] },
			),
			chunk({}, "stop", running(3), { stop_reason: null, token_ids: [2] }),
			count(11, 3, { prompt_tokens_details: { cached_tokens: 8, created_cache_tokens: 3 } }),
		],
		{ text: "Dry.", finish: "stop", usage: [11, 3] },
	),
	it(
		"an engine that fails in the middle",
		[
			opening,
			chunk({ content: "The lock" }, null, running(2)),
			{ error: { message: "EngineCore died at 10.0.0.7", type: "InternalServerError", param: null, code: 500 } },
		],
		{ text: "The lock", finish: null },
		{ fails: "failed" },
	),
	it(
		"an engine that was told to sleep",
		[opening, chunk({ content: "The" }, null, running(1)), chunk({}, "abort", running(1)), count(11, 1)],
		{ text: "The", finish: null, usage: [11, 1] },
		{ fails: "failed", directly: { finish: "abort" } },
	),
	it(
		"a request that it finds malformed too late",
		[opening, { error: { message: "bad grammar", type: "BadRequestError", param: null, code: 400 } }],
		{ choices: [], usage: null },
		{ fails: "rejected", directly: { choices: [{ text: "", finish: null }], usage: [11, 0] } },
	),
	it(
		"a text completion",
		[
			event([{ index: 0, text: " low tide", logprobs: null, finish_reason: null, stop_reason: null }], running(2)),
			event([{ index: 0, text: " at six", logprobs: null, finish_reason: null, stop_reason: null }], running(4)),
			event([{ index: 0, text: "", logprobs: null, finish_reason: "length", stop_reason: null }], running(4)),
			count(11, 4),
		],
		{ text: " low tide at six", finish: "length", usage: [11, 4] },
		{ endpoint: "completions" },
	),
	it(
		"a text completion of two choices with logprobs",
		[0, 1]
			.flatMap((index) => [
				event(
					[
						{
							index,
							text: " salt",
							logprobs: {
								tokens: [" salt"],
								token_logprobs: [-0.3],
								top_logprobs: [{ " salt": -0.3 }],
								text_offset: [0],
							},
							finish_reason: null,
						},
					],
					{ usage: usage(11, 1) },
				),
				event([{ index, text: "", logprobs: null, finish_reason: "stop" }], { usage: usage(11, 2) }),
			])
			.concat([count(11, 4)]),
		{
			choices: [0, 1].map(() => ({ text: " salt", finish: "stop", logprobs: " salt" })),
			usage: [11, 4],
		},
		{ endpoint: "completions", n: 2 },
	),
];
