import { describe, expect, test } from "bun:test";
import type { DialectName } from "../../../src/catalog/model.ts";
import { chatModel, withService } from "../../support/service.ts";
import { type UpstreamServer, withUpstream } from "../../support/upstream-server.ts";
import { CHAT_DIALECTS } from "../../support/upstream-wire.ts";

/**
 * Requests in forms that clients send and some servers refuse. Each goes through the whole service in every dialect.
 */

const upstreams = new Map(CHAT_DIALECTS.map((dialect) => [dialect, withUpstream(dialect)]));
const LISTED = "tool_choice, parallel_tool_calls, functions, function_call, logit_bias, response_format.regex";
const modelsOf = (suffix: string, from: string, to: string, extra = "") =>
	[...upstreams].map(([dialect, { url }]) =>
		chatModel({ id: `${dialect}${suffix}`, url, dialect, extra }).replace(from, to),
	);
const HISTORIES = ["reasoning_content", "reasoning", "omit"] as const;
const service = await withService({
	models: [
		...modelsOf("", "tool_choice", LISTED),
		...modelsOf("-keep", "tool_choice", LISTED, "    developer_role: keep"),
		...HISTORIES.flatMap((field) => modelsOf(`-${field}`, "", "", `    reasoning_history: ${field}`)),
		...modelsOf("-bare", "tools, tool_choice, response_format, ", ""),
		...modelsOf("-lenient", "tools, tool_choice, response_format, ", "", "    unsupported_parameters: ignore"),
	].join("\n"),
});
const { secret } = await service.customer();

type Json = Record<string, unknown>;
type Sent = Json & { readonly messages?: readonly Json[] };
const HI = { role: "user", content: "hi" };
const CALL = { id: "c", type: "function", function: { name: "f", arguments: "{}" } };
const answer = (more: Json) => ({ messages: [HI, { role: "assistant", ...more }, HI] });
const ANSWER = (sent: Sent) => sent.messages?.[1];
const LONG = "a line of text\n".repeat(2_000);
const FUNCTIONS = [
	{ role: "assistant", content: null, function_call: { name: "f", arguments: "{}" } },
	{ role: "function", name: "f", content: "1" },
];

/**
 * `part` selects the part of the sent body to compare. `openai` is the expected part for the dialect `openai` if it
 * differs.
 */
interface Kind {
	readonly name: string;
	readonly body: Json;
	readonly model?: string;
	readonly part?: (sent: Sent) => unknown;
	readonly sent?: unknown | ((dialect: DialectName) => unknown);
	readonly openai?: unknown;
	/** The field that a 400 names, if the gateway refuses the request. */
	readonly refused?: string;
	readonly ignored?: string;
	/** Dialects to which the case applies; default: all. */
	readonly only?: readonly DialectName[];
}

const ANSWERS: readonly (readonly [string, Json, Json])[] = [
	["null", { content: null }, { content: "" }],
	["no content", {}, { content: "" }],
	["a refusal", { content: null, refusal: "no" }, { content: "", refusal: "no" }],
	["audio", { content: null, audio: { id: "a" } }, { content: "", audio: { id: "a" } }],
	["an empty list of calls", { content: null, tool_calls: [] }, { content: "" }],
	["null for its calls", { content: null, tool_calls: null }, { content: "", tool_calls: null }],
	["an empty text", { content: "" }, { content: "" }],
	["an empty list of parts", { content: [] }, { content: "" }],
	["a call and no text", { content: null, tool_calls: [CALL] }, { content: null, tool_calls: [CALL] }],
];

const calling = (given: unknown) => ({ ...CALL, function: { name: "f", arguments: given } });
/** Arguments of a tool call: as the client sends them back, and as the server must receive them. */
const ARGUMENTS: readonly (readonly [string, unknown, string])[] = [
	["empty", "", "{}"],
	["blank", " ", "{}"],
	["null", null, "{}"],
	["missing", undefined, "{}"],
	["an object", { a: [1] }, '{"a":[1]}'],
	["cut off", '{"a": "b', "{}"],
	["whole", ' {"a": "b"}\n', ' {"a": "b"}\n'],
];

/** The reasoning field that each family of servers reads, according to public reports. */
const READ: Partial<Record<DialectName, string>> = { vllm: "reasoning", ollama: "reasoning" };
const DETAILS = { reasoning_details: [{ type: "reasoning.text", text: "hm", signature: "s" }] };
const SAID: readonly Json[] = [{ content: null, tool_calls: [CALL] }, { content: LONG }];
/** Reasoning of an answer that a client sends back, and the text that the server must receive. */
const REASONINGS: readonly (readonly [string, Json, string])[] = [
	["as this service wrote it", { reasoning_content: "hm" }, "hm"],
	["under the name `reasoning`", { reasoning: "hm" }, "hm"],
	["under both names", { reasoning_content: "hm", reasoning: "hm" }, "hm"],
	["under an empty and a filled name", { reasoning_content: "", reasoning: "hm" }, "hm"],
	["under a filled and an empty name", { reasoning_content: "hm", reasoning: null }, "hm"],
	["of a long text", { reasoning_content: LONG }, LONG],
];

const KINDS: readonly Kind[] = [
	...[undefined, ...HISTORIES].flatMap((history) =>
		REASONINGS.map(([name, given, text], at) => ({
			name: `sends reasoning ${name} in ${history ?? "the dialect's field"}`,
			...(history === undefined ? {} : { model: `-${history}` }),
			body: answer({ ...SAID[at % 2], ...given, ...DETAILS }),
			part: ANSWER,
			sent: (dialect: DialectName) => ({
				role: "assistant",
				...SAID[at % 2],
				...(history === "omit" ? {} : { [history ?? READ[dialect] ?? "reasoning_content"]: text, ...DETAILS }),
			}),
		})),
	),
	...ARGUMENTS.flatMap(([name, given, sent]) => [
		{
			name: `sends arguments that are ${name} as text`,
			body: answer({ content: null, tool_calls: [calling(given), CALL] }),
			part: ANSWER,
			sent: { role: "assistant", content: null, tool_calls: [calling(sent), CALL] },
		},
		{
			name: `sends arguments that are ${name} as text after a long message`,
			body: answer({ content: LONG, tool_calls: [calling(given)] }),
			part: ANSWER,
			sent: { role: "assistant", content: LONG, tool_calls: [calling(sent)] },
		},
		{
			name: `sends a deprecated call's arguments that are ${name} as text`,
			body: answer({ content: null, function_call: calling(given).function }),
			part: ANSWER,
			sent: { role: "assistant", content: null, function_call: calling(sent).function },
		},
	]),
	...[undefined, null, { type: "object", properties: { a: {} } }].map((parameters) => ({
		name: `sends a tool with parameters: ${JSON.stringify(parameters)}`,
		body: { messages: [HI], tools: [{ function: { name: "f", parameters } }] },
		part: (sent: Sent) => sent.tools,
		sent: [{ type: "function", function: { name: "f", parameters: parameters ?? { type: "object", properties: {} } } }],
	})),
	...ANSWERS.map(([name, given, sent]) => ({
		name: `accepts an answer with ${name}`,
		body: answer(given),
		part: ANSWER,
		sent: { role: "assistant", ...sent },
	})),
	{
		name: "accepts a long answer without text",
		body: answer({ content: null, refusal: LONG }),
		part: ANSWER,
		sent: { role: "assistant", content: "", refusal: LONG },
	},
	...[LONG, "be brief"].map((content) => ({
		name: `sends a ${content.length > 100 ? "long " : ""}developer message as a system message`,
		body: { messages: [{ role: "developer", content }, HI] },
		part: (sent: Sent) => sent.messages?.[0]?.role,
		sent: "system",
		openai: "developer",
	})),
	...(
		[
			["be brief", "be kind"],
			[LONG, "be kind"],
		] as const
	).map(([first, second]) => ({
		name: `joins a ${first.length > 100 ? "long " : ""}system message and a developer message at the start`,
		body: {
			messages: [
				{ role: "system", content: first },
				{ role: "developer", content: second },
				HI,
				{ role: "system", content: "now" },
			],
		},
		part: (sent: Sent) => sent.messages?.map(({ role, content }) => [role, content]),
		sent: [
			["system", `${first}\n\n${second}`],
			["user", "hi"],
			["system", "now"],
		],
		openai: [
			["system", first],
			["developer", second],
			["user", "hi"],
			["system", "now"],
		],
	})),
	...[[HI.content], ["a", "b"], [LONG]].map((texts) => ({
		name: `sends a tool result of ${texts.length} parts, ${texts[0]?.length} characters`,
		body: {
			messages: [
				HI,
				{ role: "assistant", content: null, tool_calls: [CALL] },
				{ role: "tool", tool_call_id: "c", content: texts.map((text) => ({ type: "text", text })) },
			],
		},
		part: (sent: Sent) => sent.messages?.[2]?.content,
		sent: texts.length === 1 ? texts[0] : texts.map((text) => ({ type: "text", text })),
	})),
	{
		name: "keeps the role `developer` if the catalogue says so",
		model: "-keep",
		body: { messages: [{ role: "developer", content: "be brief" }, HI] },
		part: (sent) => sent.messages?.[0]?.role,
		sent: "developer",
	},
	{
		name: "sends a function result as a tool result",
		body: { messages: [HI, ...FUNCTIONS] },
		part: (sent) => sent.messages?.slice(1),
		sent: [
			{ role: "assistant", content: null, tool_calls: [{ ...CALL, id: "call_2" }] },
			{ role: "tool", name: "f", content: "1", tool_call_id: "call_2" },
		],
		openai: FUNCTIONS,
	},
	{
		name: "refuses a function result without its call",
		body: { messages: [HI, FUNCTIONS[1]] },
		refused: "messages[1].role",
		only: CHAT_DIALECTS.filter((dialect) => dialect !== "openai"),
	},
	{
		name: "refuses a function result with another name than the call's",
		body: { messages: [HI, FUNCTIONS[0], { ...FUNCTIONS[1], name: "g" }] },
		refused: "messages[2].role",
		only: CHAT_DIALECTS.filter((dialect) => dialect !== "openai"),
	},
	{
		name: "omits empty lists",
		body: {
			messages: [HI],
			stop: [],
			tools: [],
			functions: [],
			logit_bias: {},
			parallel_tool_calls: true,
			tool_choice: "auto",
			function_call: "none",
		},
		part: ({ stream: _, stream_options: __, model: ___, ...sent }) => sent,
		sent: { messages: [HI], max_tokens: 1_024 },
		ignored: "",
	},
	...["echo", "continue_final_message", "ignore_eos"].map((name) => ({
		name: `refuses ${name} unless the catalogue lists it`,
		body: { messages: [HI], [name]: true },
		refused: name,
	})),
	...(
		[
			["min_tokens", 5],
			["best_of", 3],
			["suffix", "x"],
			["add_generation_prompt", false],
			["logit_bias", { "1": 5 }],
			["response_format", { type: "json_object" }],
			["tool_choice", "required"],
			["tool_choice", { type: "function", function: { name: "f" } }],
		] as const
	).map(([name, value]) => ({
		name: `refuses ${name} unless the catalogue lists it: ${JSON.stringify(value)}`,
		model: "-bare",
		body: { messages: [HI], tools: [{ type: "function", function: { name: "f" } }], [name]: value },
		refused: name,
	})),
	{
		name: "omits unlisted tuning fields, and values without effect",
		model: "-bare",
		body: {
			messages: [HI],
			top_k: 5,
			user: "u",
			echo: false,
			min_tokens: 0,
			best_of: 1,
			add_generation_prompt: true,
			tools: [{ type: "function", function: { name: "f" } }],
			tool_choice: "auto",
			response_format: { type: "text" },
		},
		part: ({ stream: _, stream_options: __, model: ___, ...sent }) => sent,
		sent: { messages: [HI], max_tokens: 1_024 },
		ignored: "top_k, user, echo, min_tokens, best_of, add_generation_prompt, tools, tool_choice, response_format",
	},
	{
		name: "omits all unlisted fields if the catalogue says so",
		model: "-lenient",
		body: { messages: [HI], echo: true, min_tokens: 5, response_format: { type: "json_object" } },
		part: ({ messages }) => messages,
		sent: [HI],
		ignored: "echo, min_tokens, response_format",
	},
	{
		name: "refuses a tool_choice that its servers ignore",
		body: { messages: [HI], tools: [{ type: "function", function: { name: "f" } }], tool_choice: "required" },
		refused: "tool_choice",
		only: ["ollama"],
	},
	{
		name: "forwards a listed type of response_format",
		body: { messages: [HI], response_format: { type: "regex", regex: "a+" } },
		part: ({ response_format: format }) => format,
		sent: { type: "regex", regex: "a+" },
	},
	{
		name: "refuses an unlisted type of response_format",
		body: { messages: [HI], response_format: { type: "grammar", grammar: "root ::= x" } },
		refused: "response_format.type",
	},
];

describe.each(KINDS.map((kind) => [kind.name, kind] as const))("the gateway, forwarding a chat, %s", (_, kind) => {
	test.each(kind.only ?? CHAT_DIALECTS)("for dialect %s", async (dialect) => {
		const upstream = upstreams.get(dialect) as UpstreamServer;
		for (const stream of [false, true]) {
			const before = upstream.requests.length;
			const body = { model: `${dialect}${kind.model ?? ""}`, ...kind.body, stream };
			const response = await service.chat(secret, body);
			const text = await response.text();
			if (kind.refused !== undefined) {
				const { param, code } = (JSON.parse(text) as { error: Json }).error;
				const wanted = kind.refused.startsWith("messages") ? "invalid_request" : "unsupported_parameter";
				expect([response.status, param, code]).toEqual([400, kind.refused, wanted]);
				expect(upstream.requests.length).toBe(before);
				continue;
			}
			expect([response.status, text]).toEqual([200, text]);
			const sent = upstream.requests.at(-1)?.body as Sent;
			const wanted = dialect === "openai" && kind.openai !== undefined ? kind.openai : kind.sent;
			expect(kind.part?.(sent)).toEqual(typeof wanted === "function" ? wanted(dialect) : wanted);
			if (kind.ignored !== undefined) expect(response.headers.get("x-ignored-parameters") ?? "").toBe(kind.ignored);
		}
	});
});

test("the next model of a route gets the messages in the form that its server accepts", async () => {
	const long = { role: "assistant", content: null, reasoning_content: LONG };
	await service.serve(
		`${modelsOf("", "tool_choice", LISTED).join("\n")}\n${chatModel({ id: "tiny", url: (upstreams.get("tgi") as UpstreamServer).url, dialect: "tgi" }).replace("response_format, ", "")}\nroutes:\n  - { id: both, models: [tiny, vllm] }`,
	);
	const body = { model: "both", messages: [HI, long, HI], response_format: { type: "json_object" } };
	const response = await service.chat(secret, body);
	expect([response.status, response.headers.get("x-served-model")]).toEqual([200, "vllm"]);
	const sent = (upstreams.get("vllm") as UpstreamServer).requests.at(-1)?.body as Sent;
	expect(sent.messages?.[1]).toEqual({ role: "assistant", content: "", reasoning: LONG });
});
