import { call, eventsOf, type Recording, recording, usage } from "../recording.ts";

type Rest = Parameters<typeof recording> extends [string, unknown, ...infer More] ? More : never;
const HEAD = { id: "chatcmpl-h5", object: "chat.completion.chunk", created: 1_767_225_600, model: "local-model" };

/** LM Studio: the model's name for a fingerprint, statistics on the last event, errors as events with a name. */
const lm = eventsOf(HEAD, { system_fingerprint: "local-model" });
const lmStudio = (...rest: Rest) => recording("LM Studio", "openai", ...rest);

export const LM_STUDIO: readonly Recording[] = [
	lmStudio(
		"text",
		[
			lm.chunk({ role: "assistant", content: "Kelp" }, null, {}, { logprobs: null }),
			lm.chunk({ content: " sways." }, null, {}, { logprobs: null }),
			lm.chunk({}, "stop", {}, { logprobs: null }),
			lm.count(7, 4, {}, { stats: { tokens_per_second: 51.4 } }),
		],
		{ text: "Kelp sways.", finish: "stop", usage: [7, 4] },
	),
	lmStudio(
		"thoughts inside of the text, which are the model's own words",
		[
			lm.chunk({ role: "assistant", content: "<think>" }),
			lm.chunk({ content: "Sea." }),
			lm.chunk({ content: "</think>\n\nKelp." }),
			lm.chunk({}, "stop"),
			lm.count(7, 9),
		],
		{ text: "<think>Sea.</think>\n\nKelp.", finish: "stop", usage: [7, 9] },
	),
	lmStudio(
		"a model that crashed",
		[
			lm.chunk({ role: "assistant", content: "Kelp" }),
			'event: error\ndata: {"error":{"message":"The model has crashed without additional information. (Exit code: 6)"}}',
		],
		{ text: "Kelp", finish: null },
		{ fails: "failed", done: false },
	),
	lmStudio(
		"a tool call that opens without arguments",
		[
			lm.chunk({
				role: "assistant",
				tool_calls: [{ index: 0, id: "3141", type: "function", function: { name: "dive" } }],
			}),
			lm.chunk({ tool_calls: [call(0, undefined, undefined, '{"fathoms":')] }),
			lm.chunk({ tool_calls: [call(0, undefined, undefined, " 5}")] }),
			lm.chunk({}, "tool_calls"),
			lm.count(7, 11),
		],
		{ tools: ['3141 dive({"fathoms": 5})'], finish: "tool_calls", usage: [7, 11] },
	),
];

/** LiteLLM: its count on an event with an empty choice after the finish, what its provider sent in a bag of its own. */
const lite = eventsOf(HEAD);
const BAG = { provider_specific_fields: null, refusal: null, audio: null, function_call: null, tool_calls: null };
const litellm = (...rest: Rest) => recording("LiteLLM", "openai", ...rest);

export const LITELLM: readonly Recording[] = [
	litellm(
		"text, its count after the finish beside an empty choice",
		[
			lite.chunk({ ...BAG, content: "Amber", role: "assistant" }, null, { citations: null }, { logprobs: null }),
			lite.chunk({ ...BAG, content: " glows.", role: null }, null, { citations: null }, { logprobs: null }),
			lite.chunk({ ...BAG, content: null, role: null }, "stop", { citations: null }, { logprobs: null }),
			lite.chunk({ ...BAG, content: null, role: null }, null, { usage: usage(13, 4) }, { logprobs: null }),
		],
		{ text: "Amber glows.", finish: "stop", usage: [13, 4] },
	),
	litellm(
		"thoughts with the signature that the next turn needs",
		[
			lite.chunk({
				role: "assistant",
				content: "",
				reasoning_content: "Resin",
				thinking_blocks: [{ type: "thinking", thinking: "Resin", signature: null }],
			}),
			lite.chunk({
				content: "",
				reasoning_content: "",
				thinking_blocks: [{ type: "thinking", thinking: "", signature: "c2lnbmVk" }],
				provider_specific_fields: { thinking_blocks: [{ node: "10.0.0.7" }] },
			}),
			lite.chunk({ content: "Amber." }),
			lite.chunk({}, "stop"),
			lite.count(13, 6),
		],
		{
			text: "Amber.",
			reasoning: "Resin",
			signed: '[[{"type":"thinking","thinking":"Resin"}],[{"type":"thinking","thinking":"","signature":"c2lnbmVk"}]]',
			finish: "stop",
			usage: [13, 6],
		},
		{
			directly: {
				signed:
					'[[{"type":"thinking","thinking":"Resin","signature":null}],[{"type":"thinking","thinking":"","signature":"c2lnbmVk"}]]',
			},
		},
	),
	litellm(
		"a provider that failed behind it",
		[
			lite.chunk({ role: "assistant", content: "Am" }),
			{
				error: { message: "litellm.APIConnectionError: https://10.0.0.7/v1", type: "None", param: "None", code: "500" },
			},
		],
		{ text: "Am", finish: null },
		{ fails: "failed", done: false },
	),
];

/** OpenRouter: comments while it waits, who served it, what it cost there, and reasoning in two forms at once. */
const OR = {
	id: "gen-1767",
	provider: "Somewhere",
	model: "vendor/model",
	object: "chat.completion.chunk",
	created: 1_767_225_600,
};
const or = eventsOf(OR);
const COSTS = { cost: 0.00021, is_byok: false, cost_details: { upstream_inference_cost: 0.0002 } };
const openRouter = (...rest: Rest) => recording("OpenRouter", "openai", ...rest);

export const OPENROUTER: readonly Recording[] = [
	openRouter(
		"text after a while",
		[
			": OPENROUTER PROCESSING",
			": OPENROUTER PROCESSING",
			or.chunk({ role: "assistant", content: "Tern" }, null, {}, { native_finish_reason: null, logprobs: null }),
			or.chunk({ role: "assistant", content: "s dive." }, null, {}, { native_finish_reason: null, logprobs: null }),
			or.chunk({ role: "assistant", content: "" }, "stop", {}, { native_finish_reason: "end_turn", logprobs: null }),
			or.chunk(
				{ role: "assistant", content: "" },
				null,
				{ usage: usage(16, 5, COSTS) },
				{ native_finish_reason: null },
			),
		],
		{ text: "Terns dive.", finish: "stop", usage: [16, 5] },
	),
	openRouter(
		"reasoning in text and in details",
		[
			or.chunk({
				role: "assistant",
				content: "",
				reasoning: "Birds",
				reasoning_details: [{ type: "reasoning.text", text: "Birds", index: 0, format: "anthropic-claude-v1" }],
			}),
			or.chunk({
				role: "assistant",
				content: "",
				reasoning_details: [{ type: "reasoning.text", signature: "c2ln", index: 0, format: "anthropic-claude-v1" }],
			}),
			or.chunk({ role: "assistant", content: "Terns." }),
			or.chunk({ role: "assistant", content: "" }, "stop"),
			or.count(16, 9, { ...COSTS, completion_tokens_details: { reasoning_tokens: 3 } }),
		],
		{
			text: "Terns.",
			reasoning: "Birds",
			signed:
				'[[{"type":"reasoning.text","text":"Birds","format":"anthropic-claude-v1","index":0}],[{"type":"reasoning.text","signature":"c2ln","format":"anthropic-claude-v1","index":0}]]',
			finish: "stop",
			usage: [16, 9],
		},
		{
			directly: {
				signed:
					'[[{"type":"reasoning.text","text":"Birds","index":0,"format":"anthropic-claude-v1"}],[{"type":"reasoning.text","signature":"c2ln","index":0,"format":"anthropic-claude-v1"}]]',
			},
		},
	),
	openRouter(
		"reasoning that is sealed, and a tool",
		[
			or.chunk({ role: "assistant", content: null, tool_calls: [call(0, "call_t", "count", "{}")] }),
			or.chunk({
				role: "assistant",
				content: null,
				reasoning_details: [{ type: "reasoning.encrypted", data: "b3BhcXVl", id: "rs_9", index: 0 }],
			}),
			or.chunk({ role: "assistant", content: "" }, "tool_calls"),
			or.count(16, 30, COSTS),
		],
		{
			tools: ["call_t count({})"],
			signed: '[[{"type":"reasoning.encrypted","data":"b3BhcXVl","id":"rs_9","index":0}]]',
			finish: "tool_calls",
			usage: [16, 30],
		},
	),
	openRouter(
		"pages that it read",
		[
			or.chunk({ role: "assistant", content: "Terns winter south [1]." }),
			or.chunk({
				role: "assistant",
				content: "",
				annotations: [
					{
						type: "url_citation",
						url_citation: {
							url: "https://example.org/terns",
							title: "Terns",
							content: "…",
							start_index: 19,
							end_index: 22,
						},
					},
				],
			}),
			or.chunk({ role: "assistant", content: "" }, "stop"),
			or.count(16, 8, COSTS),
		],
		{ text: "Terns winter south [1].", cites: ["https://example.org/terns"], finish: "stop", usage: [16, 8] },
	),
	openRouter(
		"a provider that went away",
		[
			or.chunk({ role: "assistant", content: "Terns" }),
			or.chunk({ role: "assistant", content: "" }, "error", {
				error: { code: 502, message: "Provider disconnected at 10.0.0.7" },
			}),
		],
		{ text: "Terns", finish: null },
		{ fails: "failed" },
	),
];
