import { call, eventsOf, type Recording, recording, usage } from "../recording.ts";

type Rest = Parameters<typeof recording> extends [string, unknown, ...infer More] ? More : never;
const HEAD = { id: "chatcmpl-31", object: "chat.completion.chunk", created: 1_767_225_600, model: "vendor-model" };

/** Groq: ids of its own on the first event, both of its counts on the finish. */
const g = eventsOf(HEAD, { system_fingerprint: "fp_c5f20b5bb1" });
const groq = (...rest: Rest) => recording("Groq", "openai", ...rest);
const GROQ_END = { usage: usage(20, 4, { queue_time: 0.02 }), x_groq: { id: "req_01", usage: usage(20, 4) } };

export const GROQ: readonly Recording[] = [
	groq(
		"text, the count on the finish",
		[
			g.chunk({ role: "assistant", content: "" }, null, { x_groq: { id: "req_01" } }, { logprobs: null }),
			g.chunk({ content: "Quartz" }, null, {}, { logprobs: null }),
			g.chunk({ content: " veins." }, null, {}, { logprobs: null }),
			g.chunk({}, "stop", GROQ_END, { logprobs: null }),
		],
		{ text: "Quartz veins.", finish: "stop", usage: [20, 4] },
	),
	groq(
		"reasoning",
		[
			g.chunk({ role: "assistant", content: "" }),
			g.chunk({ reasoning: "Rock", channel: "analysis" }),
			g.chunk({ content: "Quartz." }),
			g.chunk({}, "stop", GROQ_END),
		],
		{ text: "Quartz.", reasoning: "Rock", finish: "stop", usage: [20, 4] },
	),
	groq(
		"a tool that the model did not get right",
		[
			g.chunk({ role: "assistant", content: "" }, null, { x_groq: { id: "req_01" } }),
			{
				error: {
					message: "Failed to call a function. Please adjust your prompt.",
					type: "invalid_request_error",
					code: "tool_use_failed",
					failed_generation: "<function=dig>{",
					status_code: 400,
				},
			},
		],
		{ choices: [], usage: null },
		{ fails: "rejected", done: false, directly: { choices: [{ text: "", finish: null }] } },
	),
];

/** xAI: a running count on every event, the role too, sources on the last. */
const x = eventsOf(HEAD, { system_fingerprint: "fp_156d35dcaa" });
const xai = (...rest: Rest) => recording("xAI", "openai", ...rest);
const so = (completion: number, reasoning = 0) => ({
	usage: { ...usage(30, completion), completion_tokens_details: { reasoning_tokens: reasoning } },
});

export const XAI: readonly Recording[] = [
	xai(
		"text, a count on each event",
		[
			x.chunk({ role: "assistant", content: "Salt" }, null, so(1)),
			x.chunk({ role: "assistant", content: " pans." }, null, so(3)),
			x.chunk({ role: "assistant", content: "" }, "stop", so(3)),
		],
		{ text: "Salt pans.", finish: "stop", usage: [30, 3] },
	),
	xai(
		"reasoning that is counted beside the answer",
		[
			x.chunk({ role: "assistant", content: "", reasoning_content: "Brine." }),
			x.chunk({ role: "assistant", content: "Salt." }),
			x.chunk({ role: "assistant", content: "" }, "stop"),
			{
				...x.event([]),
				usage: {
					prompt_tokens: 30,
					completion_tokens: 2,
					total_tokens: 372,
					completion_tokens_details: { reasoning_tokens: 340 },
				},
			},
		],
		{ text: "Salt.", reasoning: "Brine.", finish: "stop", usage: [30, 342] },
		{ directly: { usage: [30, 2] } },
	),
	xai(
		"sources at the end",
		[
			x.chunk({ role: "assistant", content: "Salt." }),
			x.chunk({ role: "assistant", content: "" }, "stop"),
			x.count(30, 2, { num_sources_used: 1 }, { citations: ["https://example.org/salt"] }),
		],
		{ text: "Salt.", finish: "stop", usage: [30, 2], sources: ["https://example.org/salt"] },
	),
];

/** Mistral: tools whole and without a type, padding, content in parts from its reasoning models. */
const m = eventsOf(HEAD);
const mistral = (...rest: Rest) => recording("Mistral", "openai", ...rest);

export const MISTRAL: readonly Recording[] = [
	mistral(
		"text with padding",
		[
			m.chunk({ role: "assistant", content: "" }, null, { p: "abcdefgh" }),
			m.chunk({ content: "Vines" }, null, { p: "ab" }),
			m.chunk({ content: "" }, "stop", { usage: usage(12, 2), p: "abcd" }),
		],
		{ text: "Vines", finish: "stop", usage: [12, 2] },
	),
	mistral(
		"a tool without a type",
		[
			m.chunk(
				{
					role: "assistant",
					content: "",
					tool_calls: [{ id: "D681PevKs", index: 0, function: { name: "prune", arguments: '{"row": 2}' } }],
				},
				"tool_calls",
				{
					usage: usage(12, 9),
				},
			),
		],
		{ tools: ['D681PevKs prune({"row": 2})'], finish: "tool_calls", usage: [12, 9] },
	),
	mistral(
		"content in parts",
		[
			m.chunk({ role: "assistant", content: "" }),
			m.chunk({ content: [{ type: "thinking", thinking: [{ type: "text", text: "Soil" }] }] }),
			m.chunk({ content: [{ type: "thinking", thinking: [{ type: "text", text: " first." }], closed: true }] }),
			m.chunk({ content: [{ type: "text", text: "Vin" }] }),
			m.chunk({ content: "es." }),
			m.chunk({ content: "" }, "stop", { usage: usage(12, 8) }),
		],
		{ text: "Vines.", reasoning: "Soil first.", finish: "stop", usage: [12, 8] },
		{ directly: { text: "[parts][parts][parts]es.", reasoning: undefined as never } },
	),
	mistral(
		"a part that nobody knows",
		[
			m.chunk({ role: "assistant", content: "Vines" }),
			m.chunk({ content: [{ type: "hologram", data: "…" }] }),
			m.chunk({}, "stop"),
		],
		{ text: "Vines", finish: null },
		{ fails: "failed", directly: { text: "Vines[parts]", finish: "stop" } },
	),
	mistral(
		"a context that is full",
		[
			m.chunk({ role: "assistant", content: "Vines" }),
			m.chunk({ content: "" }, "model_length", { usage: usage(12, 2) }),
		],
		{ text: "Vines", finish: "length", usage: [12, 2] },
		{ directly: { finish: "model_length" } },
	),
];

/** DeepSeek: comments while it is busy, nulls in turn, its count on the finish. */
const d = eventsOf(HEAD, { system_fingerprint: "fp_a49d71b8a1_prod0820_fp8_kvcache" });
const deepSeek = (...rest: Rest) => recording("DeepSeek", "openai", ...rest);

export const DEEPSEEK: readonly Recording[] = [
	deepSeek(
		"reasoning after a wait",
		[
			": keep-alive",
			": keep-alive",
			d.chunk({ role: "assistant", content: null, reasoning_content: "" }, null, {}, { logprobs: null }),
			d.chunk({ content: null, reasoning_content: "Light" }, null, {}, { logprobs: null }),
			d.chunk({ content: "Beacon.", reasoning_content: null }, null, {}, { logprobs: null }),
			d.chunk({ content: "", reasoning_content: null }, "stop", {
				usage: usage(18, 5, { prompt_cache_hit_tokens: 16, prompt_tokens_details: { cached_tokens: 16 } }),
			}),
		],
		{ text: "Beacon.", reasoning: "Light", finish: "stop", usage: [18, 5] },
	),
	deepSeek(
		"a service that ran out of room",
		[
			d.chunk({ role: "assistant", content: "Bea" }),
			d.chunk({ content: "" }, "insufficient_system_resource", { usage: usage(18, 1) }),
		],
		{ text: "Bea", finish: null, usage: null },
		{ fails: "failed", directly: { finish: "insufficient_system_resource", usage: [18, 1] } },
	),
];

/** Together: the text twice, a token's number, finishes by names of its own. */
const t = eventsOf(HEAD);
const together = (...rest: Rest) => recording("Together", "openai", ...rest);

export const TOGETHER: readonly Recording[] = [
	together(
		"text in two places",
		[
			t.chunk(
				{ token_id: 791, role: "assistant", content: "Loam" },
				null,
				{ usage: null },
				{ text: "Loam", logprobs: null, seed: null },
			),
			t.chunk(
				{ token_id: 2, role: "assistant", content: "" },
				"eos",
				{ usage: usage(9, 2) },
				{ text: "", seed: 7_411 },
			),
		],
		{ text: "Loam", finish: "stop", usage: [9, 2] },
		{ directly: { finish: "eos" } },
	),
	together(
		"tools in one event",
		[
			t.chunk({
				role: "assistant",
				content: "",
				tool_calls: [call(0, "call_1a", "till", "{}"), call(1, "call_1b", "seed", '{"n":1}')],
			}),
			t.chunk({ role: "assistant", content: "" }, "tool_calls", { usage: usage(9, 20) }),
		],
		{ tools: ["call_1a till({})", 'call_1b seed({"n":1})'], finish: "tool_calls", usage: [9, 20] },
	),
];

/** Fireworks: its count on the finish, lines without a space. */
const f = eventsOf(HEAD);
const fireworks = (...rest: Rest) => recording("Fireworks", "openai", ...rest);

export const FIREWORKS: readonly Recording[] = [
	fireworks(
		"text",
		[
			f.chunk({ role: "assistant" }),
			f.chunk({ content: "Clay" }),
			f.chunk({ content: " pots." }),
			f.chunk({}, "stop", { usage: usage(10, 4) }),
		],
		{ text: "Clay pots.", finish: "stop", usage: [10, 4] },
		{ space: "", eol: "\r\n" },
	),
	fireworks(
		"a tool after words",
		[
			f.chunk({ role: "assistant" }),
			f.chunk({ content: "Firing." }),
			f.chunk({ tool_calls: [call(0, "call_9", "fire", null as never)] }),
			f.chunk({ tool_calls: [call(0, undefined, undefined, '{"c":1100}')] }),
			f.chunk({}, "tool_calls", { usage: usage(10, 15) }),
		],
		{ text: "Firing.", tools: ['call_9 fire({"c":1100})'], finish: "tool_calls", usage: [10, 15] },
	),
];
