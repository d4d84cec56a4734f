import { type Static, Type } from "@sinclair/typebox";
import { TypeCompiler } from "@sinclair/typebox/compiler";
import { type AsciiLength, measureChat } from "../../admission/prompt-bound.ts";
import { parseExactly } from "../../base/exact-json.ts";
import { Fault } from "../../base/fault.ts";
import type { RawJson } from "../../base/json-structure.ts";
import type { Model } from "../../catalog/model.ts";
import { OWN_FIELDS } from "../../catalog/request-fields.ts";
import type { ChatChunk, ChatReply } from "../../upstream/chat/chat-answer.ts";
import { chatStream, unstreamedChat } from "../../upstream/chat/chat-call.ts";
import { Prompt } from "../../upstream/prompt.ts";
import { generatedText } from "../generated-text.ts";
import {
	assertBody,
	assertStreamOptions,
	GENERATION_FIELDS,
	limitsOutput,
	nullish,
	openObject,
	removeEmpty,
	requestBody,
	supportedFields,
	unsupportedLimits,
} from "../request-fields.ts";
import { adaptMessages, Message } from "./messages.ts";
import { canSendRaw } from "./passed-messages.ts";

/** Longest accepted list of messages. A longer list would delay other requests and fits into no model's context. */
const MESSAGES_MAX = 4_096;
const TOOLS_MAX = 1_024;

/** A tool without `type` is accepted, because some clients omit the field. */
const Tool = openObject({
	type: nullish(Type.String()),
	function: Type.Optional(
		openObject({ name: Type.String({ minLength: 1 }), parameters: Type.Optional(Type.Unknown()) }),
	),
});

export const ChatRequestBody = requestBody({
	messages: Type.Array(Message, { minItems: 1, maxItems: MESSAGES_MAX }),
	logprobs: nullish(Type.Boolean()),
	top_logprobs: nullish(Type.Integer({ minimum: 0, maximum: 20 })),
	tools: nullish(Type.Array(Tool, { maxItems: TOOLS_MAX })),
	tool_choice: nullish(Type.Union([Type.String(), openObject({ type: Type.String() })])),
	parallel_tool_calls: nullish(Type.Boolean()),
	response_format: nullish(
		openObject({
			type: Type.String({ description: "`text`, `json_object`, `json_schema`, or a type of `supported_parameters`." }),
			json_schema: nullish(openObject({ name: Type.String() })),
		}),
	),
	reasoning_effort: nullish(Type.String()),
	...GENERATION_FIELDS,
});
export type ChatRequestBody = Static<typeof ChatRequestBody>;

const check = TypeCompiler.Compile(ChatRequestBody);

export type ChatInput = ReturnType<typeof readChatRequest>;

const RENDERED: ReadonlySet<string> = new Set([
	"tools",
	"functions",
	"response_format",
	"tool_choice",
	"documents",
	"chat_template_kwargs",
]);

/** Checks a chat request. `leftOut`: size of strings cut from `body`. Faults invalid_request, unsupported_parameter. */
export function readChatRequest(body: Record<string, unknown>, model: Model, raw?: RawJson, leftOut?: AsciiLength) {
	removeEmpty(body);
	assertBody(check, body);
	assertStreamOptions(body);
	const isSame = adaptMessages(body.messages, model);
	if (raw !== undefined) raw.isCurrent &&= isSame;
	const passed =
		raw?.isCurrent === true && canSendRaw(body.messages, raw, leftOut !== undefined) ? raw.text : undefined;
	if (raw !== undefined && leftOut !== undefined && passed === undefined) {
		body.messages = (raw.isExact ? parseExactly(raw.text, "messages") : JSON.parse(raw.text)) as typeof body.messages;
		adaptMessages(body.messages, model);
	}
	completeTools(body.tools);
	if (body.response_format) assertResponseFormat(body.response_format, model);
	const asked = limitsOutput(model) ? (body.max_completion_tokens ?? body.max_tokens) : undefined;
	const { fields, ignored } = supportedFields(body, model, OWN_FIELDS.chat, unsupportedLimits(body, model));
	return {
		prompt: new Prompt(body.messages, passed),
		stream: body.stream === true,
		includeUsage: body.stream_options?.include_usage === true,
		choices: model.parameters.has("n") ? (body.n ?? 1) : 1,
		/** Output limit of one choice: the smaller of the client's limit and the model's. */
		maxOutputTokens: Math.min(asked ?? model.maxOutputTokens, model.maxOutputTokens),
		fields,
		measure: measureChat(body.messages, renderedOf(fields), model, passed === undefined ? undefined : leftOut),
		ignored,
	};
}

const NOTHING_RENDERED: readonly unknown[] = [];

function renderedOf(fields: Readonly<Record<string, unknown>>): readonly unknown[] {
	for (const field in fields) if (RENDERED.has(field)) return allRenderedOf(fields);
	return NOTHING_RENDERED;
}

function allRenderedOf(fields: Readonly<Record<string, unknown>>): readonly unknown[] {
	return [...RENDERED].filter((name) => name in fields).map((name) => fields[name]);
}

/** Adds `type` and `parameters`, which servers require, to tools without them. Modifies the parsed body. */
function completeTools(tools: ChatRequestBody["tools"]): void {
	if (!tools) return;
	for (const [at, tool] of tools.entries()) {
		tool.type ??= "function";
		if (tool.function !== undefined) tool.function.parameters ??= { type: "object", properties: {} };
		if (tool.type !== "function" || tool.function !== undefined) continue;
		throw new Fault("invalid_request", `\`tools[${at}].function\` is missing.`, { param: `tools[${at}].function` });
	}
}

const FORMATS: ReadonlySet<string> = new Set(["text", "json_object", "json_schema"]);

/** Accepts OpenAI's formats, and those that the catalogue lists for the model as `response_format.TYPE`. */
function assertResponseFormat(
	{ type, json_schema: schema }: NonNullable<ChatRequestBody["response_format"]>,
	model: Model,
): void {
	if (type === "json_schema" && !schema) {
		const param = "response_format.json_schema";
		throw new Fault("invalid_request", `\`${param}\` is missing.`, { param });
	}
	if (FORMATS.has(type) || model.parameters.has(`response_format.${type}`)) return;
	throw new Fault("unsupported_parameter", "This model supports `text`, `json_object` and `json_schema`.", {
		param: "response_format.type",
	});
}

export const chat = generatedText<ChatInput, ChatReply, ChatChunk>({
	name: "chat",
	promptField: "messages",
	schema: ChatRequestBody,
	readsRaw: true,
	idPrefix: "chatcmpl",
	object: { whole: "chat.completion", chunk: "chat.completion.chunk" },
	read: ({ value, raw, leftOut }, model) => readChatRequest(value, model, raw, leftOut),
	whole: unstreamedChat,
	stream: chatStream,
});
