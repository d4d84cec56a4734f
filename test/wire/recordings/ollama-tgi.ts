import { call, eventsOf, type Recording, recording, usage } from "../recording.ts";

/** Ollama: its errors are lost in the middle, its older builds say the role each time, its completions count zeros. */
const HEAD = {
	id: "chatcmpl-412",
	object: "chat.completion.chunk",
	created: 1_767_225_600,
	model: "served-name",
	system_fingerprint: "fp_ollama",
};
const { event, chunk, count } = eventsOf(HEAD);
const ollama = (...rest: Parameters<typeof recording> extends [string, unknown, ...infer Rest] ? Rest : never) =>
	recording("Ollama", "ollama", ...rest);

export const OLLAMA: readonly Recording[] = [
	ollama(
		"text",
		[chunk({ role: "assistant", content: "Moss" }), chunk({ content: " grows." }), chunk({}, "stop"), count(9, 4)],
		{ text: "Moss grows.", finish: "stop", usage: [9, 4] },
	),
	ollama(
		"an older build: the role each time, the finish on the last word",
		[chunk({ role: "assistant", content: "Moss" }), chunk({ role: "assistant", content: "." }, "stop")],
		{ text: "Moss.", finish: "stop" },
	),
	ollama(
		"thoughts",
		[
			chunk({ role: "assistant", content: "", reasoning: "North" }),
			chunk({ role: "assistant", content: "", reasoning: " side." }),
			chunk({ role: "assistant", content: "Moss." }),
			chunk({}, "stop"),
			count(9, 7),
		],
		{ text: "Moss.", reasoning: "North side.", finish: "stop", usage: [9, 7] },
	),
	ollama(
		"tools, each whole",
		[
			chunk({ role: "assistant", content: "", tool_calls: [call(0, "call_x1", "grow", '{"on":"stone"}')] }),
			chunk({ role: "assistant", content: "", tool_calls: [call(1, "call_x2", "rest", "{}")] }),
			chunk({}, "tool_calls"),
			count(9, 21),
		],
		{ tools: ['call_x1 grow({"on":"stone"})', "call_x2 rest({})"], finish: "tool_calls", usage: [9, 21] },
	),
	ollama(
		"a prompt that was cached: no count of it",
		[chunk({ role: "assistant", content: "Moss." }), chunk({}, "stop"), event([], { usage: usage(0, 3) })],
		{ text: "Moss.", finish: "stop" },
		{ directly: { usage: [0, 3] } },
	),
	ollama(
		"an error in the middle, which becomes an empty event",
		[
			chunk({ role: "assistant", content: "Moss" }),
			{ ...event([{ index: 0, delta: { role: "assistant", content: "" }, finish_reason: null }]), model: "" },
		],
		{ text: "Moss", finish: null },
		{ fails: "died", done: false },
	),
	ollama(
		"a text completion, zeros until it knows",
		[
			event([{ index: 0, text: " lichen", finish_reason: null }], { usage: usage(0, 0) }),
			event([{ index: 0, text: "", finish_reason: "stop" }], { usage: usage(0, 0) }),
			count(9, 2),
		],
		{ text: " lichen", finish: "stop", usage: [9, 2] },
		{ endpoint: "completions" },
	),
];

const TGI_HEAD = {
	object: "chat.completion.chunk",
	id: "",
	created: 1_767_225_600,
	model: "served-name",
	system_fingerprint: "3.3.5-native",
};
const t = eventsOf(TGI_HEAD, { usage: null });
const tgi = (...rest: Parameters<typeof recording> extends [string, unknown, ...infer Rest] ? Rest : never) =>
	recording("TGI", "tgi", ...rest);

/** Text Generation Inference: events without an id, finishes by names of its own, completions that do not say theirs. */
export const TGI: readonly Recording[] = [
	tgi(
		"text, ended by its own word for it",
		[
			t.chunk({ role: "assistant", content: "Peat" }, null, {}, { logprobs: null }),
			t.chunk({ role: "assistant", content: " burns." }, null, {}, { logprobs: null }),
			t.chunk({ role: "assistant", content: "" }, "eos_token", {}, { logprobs: null }),
			t.count(10, 4),
		],
		{ text: "Peat burns.", finish: "stop", usage: [10, 4] },
		{ directly: { finish: "eos_token" } },
	),
	tgi(
		"a tool without an id, its arguments in pieces",
		[
			t.chunk({
				role: "assistant",
				tool_calls: [{ index: 0, id: "", type: "function", function: { name: "cut", arguments: "{" } }],
			}),
			t.chunk({
				role: "assistant",
				tool_calls: [{ index: 0, id: "", type: "function", function: { name: null, arguments: '"peat": 2}' } }],
			}),
			t.chunk({ role: "assistant", content: "" }, "tool_calls"),
			t.count(10, 12),
		],
		{ tools: ['made cut({"peat": 2})'], finish: "tool_calls", usage: [10, 12] },
		{ directly: { tools: ['cut({"peat": 2})'] } },
	),
	tgi(
		"logprobs",
		[
			t.chunk(
				{ role: "assistant", content: "Peat" },
				null,
				{},
				{
					logprobs: { content: [{ token: "Peat", logprob: -0.4, top_logprobs: [{ token: "Turf", logprob: -1.2 }] }] },
				},
			),
			t.chunk({ role: "assistant", content: "" }, "stop"),
			t.count(10, 2),
		],
		{ text: "Peat", logprobs: "Peat", finish: "stop", usage: [10, 2] },
	),
	tgi(
		"an error in the middle, which always says 422",
		[
			t.chunk({ role: "assistant", content: "Peat" }),
			{ error: { message: "Request failed during generation: CUDA out of memory", http_status_code: 422 } },
		],
		{ text: "Peat", finish: null },
		{ fails: "failed" },
	),
	tgi(
		"a text completion that never says how it finished",
		[
			t.event([{ index: 0, text: " bog", logprobs: null, finish_reason: "" }]),
			t.event([{ index: 0, text: " oak", logprobs: null, finish_reason: "" }]),
			t.count(10, 2),
		],
		{ text: " bog oak", finish: "stop", usage: [10, 2] },
		{ endpoint: "completions", directly: { finish: null } },
	),
	tgi(
		"a text completion with its count on the last word",
		[
			t.event([{ index: 0, text: " bog", logprobs: null, finish_reason: "" }]),
			t.event([{ index: 0, text: " oak", logprobs: null, finish_reason: "length" }], { usage: usage(10, 2) }),
		],
		{ text: " bog oak", finish: "length", usage: [10, 2] },
		{ endpoint: "completions" },
	),
];
