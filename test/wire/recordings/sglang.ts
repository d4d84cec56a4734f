import { call, eventsOf, type Line, type Recording, recording, usage } from "../recording.ts";

/** SGLang: nulls everywhere, `created` anew on each event, reasoning's count beside the others, finishes last. */
const HEAD = { id: "3c1f", object: "chat.completion.chunk", model: "served-name" };
let createdS = 1_767_225_600;
const { event, count } = eventsOf(HEAD);
const EMPTY = { role: null, content: null, reasoning_content: null, tool_calls: null };
const chunk = (delta: object, finish: string | null = null, completion?: number, index = 0): Line =>
	event([{ index, delta: { ...EMPTY, ...delta }, logprobs: null, finish_reason: finish, matched_stop: null }], {
		created: createdS++,
		usage: completion === undefined ? null : usage(14, completion),
	});
const it = (...rest: Parameters<typeof recording> extends [string, unknown, ...infer Rest] ? Rest : never) =>
	recording("SGLang", "sglang", ...rest);

export const SGLANG: readonly Recording[] = [
	it(
		"text",
		[
			chunk({ role: "assistant", content: "" }),
			chunk({ content: "Barley" }, null, 2),
			chunk({ content: " and rye." }, null, 5),
			chunk({}, "stop", 6),
			count(14, 6, { prompt_tokens_details: null, reasoning_tokens: 0 }),
		],
		{ text: "Barley and rye.", finish: "stop", usage: [14, 6] },
	),
	it(
		"reasoning, its count at the top of the record",
		[
			chunk({ role: "assistant", content: "" }),
			chunk({ reasoning_content: "Grain" }, null, 2),
			chunk({ reasoning_content: " first." }, null, 4),
			chunk({ content: "Rye." }, null, 6),
			chunk({}, "stop", 7),
			count(14, 7, { reasoning_tokens: 4 }),
		],
		{ text: "Rye.", reasoning: "Grain first.", finish: "stop", usage: [14, 7] },
	),
	it(
		"two tools, and the finish of a parser",
		[
			chunk({ role: "assistant", content: "" }),
			chunk({ tool_calls: [call(0, "call_b7", "sow", "")] }, null, 3),
			chunk({ tool_calls: [{ ...call(0, undefined, undefined, '{"field": 4}'), id: null, type: null }] }, null, 8),
			chunk({ tool_calls: [call(1, "call_c8", "reap", "{}")] }, null, 12),
			chunk({}, "tool_calls", 13),
			count(14, 13),
		],
		{ tools: ['call_b7 sow({"field": 4})', "call_c8 reap({})"], finish: "tool_calls", usage: [14, 13] },
	),
	it(
		"two choices, both finished at the end",
		[
			chunk({ role: "assistant", content: "" }, null, 0, 0),
			chunk({ role: "assistant", content: "" }, null, 0, 1),
			chunk({ content: "Oats" }, null, 1, 0),
			chunk({ content: "Hay" }, null, 1, 1),
			chunk({}, "stop", 2, 0),
			chunk({}, "length", 2, 1),
			count(14, 4),
		],
		{
			choices: [
				{ text: "Oats", finish: "stop" },
				{ text: "Hay", finish: "length" },
			],
			usage: [14, 4],
		},
		{ n: 2 },
	),
	it(
		"an older build that finishes with nothing",
		[chunk({ role: "assistant", content: "" }), chunk({ content: "Oats." }, null, 3), chunk({}, "", 4), count(14, 4)],
		{ text: "Oats.", finish: "stop", usage: [14, 4] },
		{ directly: { finish: null } },
	),
	it(
		"a request that it finds malformed too late",
		[
			{
				error: {
					object: "error",
					message: "logit_bias: unknown token",
					type: "BadRequestError",
					param: null,
					code: 400,
				},
			},
		],
		{ choices: [], usage: null },
		{ fails: "rejected" },
	),
	it(
		"a scheduler that gives the request up",
		[chunk({ role: "assistant", content: "" }), chunk({ content: "Oats" }, null, 1), chunk({}, "abort", 1)],
		{ text: "Oats", finish: null, usage: [14, 1] },
		{ fails: "failed", directly: { finish: "abort" } },
	),
	it(
		"an end without its end",
		[chunk({ role: "assistant", content: "" }), chunk({ content: "Oa" }, null, 1)],
		{ text: "Oa", finish: null, usage: [14, 1] },
		{ fails: "died", done: false },
	),
];
