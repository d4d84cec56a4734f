import { type Static, Type } from "@sinclair/typebox";
import { TypeCompiler } from "@sinclair/typebox/compiler";
import { measureChat, type PlainLength } from "../../admission/prompt-bound.ts";
import { Fault } from "../../base/fault.ts";
import type { RawValue } from "../../base/json-structure.ts";
import type { Model } from "../../catalog/model.ts";
import { OWN_FIELDS } from "../../catalog/request-fields.ts";
import type { ChatChunk, ChatReply } from "../../upstream/chat/chat-answer.ts";
import { chatStream, chatWhole } from "../../upstream/chat/chat-call.ts";
import { Prompt } from "../../upstream/prompt.ts";
import { generatedText } from "../generated-text.ts";
import {
	assertBody,
	assertStreamOptions,
	GENERATION_FIELDS,
	honouredFields,
	limitsOutput,
	openObject,
	optional,
	requestBody,
	unsupportedOf,
} from "../request-fields.ts";
import { type ContentPart, mayPass } from "./passed-messages.ts";

const Part = openObject({ type: Type.String() });

const Message = openObject({
	role: Type.Union([
		Type.Literal("system"),
		Type.Literal("user"),
		Type.Literal("assistant"),
		Type.Literal("tool"),
		Type.Literal("developer"),
		Type.Literal("function"),
	]),
	content: Type.Optional(Type.Union([Type.String(), Type.Array(Part), Type.Null()])),
	name: optional(Type.String()),
	tool_call_id: optional(Type.String()),
	tool_calls: optional(Type.Array(openObject({}))),
});

/** Some clients omit the type of a function tool. */
const Tool = openObject({
	type: optional(Type.String()),
	function: Type.Optional(openObject({ name: Type.String({ minLength: 1 }) })),
});

export const ChatRequestBody = requestBody({
	messages: Type.Array(Message, { minItems: 1 }),
	logprobs: optional(Type.Boolean()),
	top_logprobs: optional(Type.Integer({ minimum: 0, maximum: 20 })),
	tools: optional(Type.Array(Tool)),
	tool_choice: optional(Type.Union([Type.String(), openObject({ type: Type.String() })])),
	parallel_tool_calls: optional(Type.Boolean()),
	response_format: optional(
		Type.Union([
			openObject({ type: Type.Literal("text") }),
			openObject({ type: Type.Literal("json_object") }),
			openObject({ type: Type.Literal("json_schema"), json_schema: openObject({ name: Type.String() }) }),
		]),
	),
	reasoning_effort: optional(Type.String()),
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

/** `leftOut`: text cut from `body`. Faults: invalid_request and unsupported_parameter, naming the field. */
export function readChatRequest(body: Record<string, unknown>, model: Model, raw?: RawValue, leftOut?: PlainLength) {
	assertBody(check, body);
	assertStreamOptions(body);
	checkMessages(body.messages, model);
	const passed = raw !== undefined && mayPass(body.messages, raw, leftOut !== undefined) ? raw.text : undefined;
	if (raw !== undefined && leftOut !== undefined && passed === undefined) {
		body.messages = JSON.parse(raw.text);
		checkMessages(body.messages, model);
	}
	completeTools(body.tools);
	const asked = limitsOutput(model) ? (body.max_completion_tokens ?? body.max_tokens) : undefined;
	const { fields, ignored } = honouredFields(body, model, OWN_FIELDS.chat, unsupportedOf(body, model));
	return {
		/** The messages, with their raw JSON if they may pass unchanged. */
		prompt: new Prompt(body.messages, passed),
		stream: body.stream === true,
		includeUsage: body.stream_options?.include_usage === true,
		choices: model.parameters.has("n") ? (body.n ?? 1) : 1,
		/** Output limit of one choice: the client's or the model's, whichever is smaller. */
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

/** Servers require the type that the client omitted. The parsed body belongs to this request. */
function completeTools(tools: ChatRequestBody["tools"]): void {
	if (!tools) return;
	for (const [at, tool] of tools.entries()) {
		tool.type ??= "function";
		if (tool.type !== "function" || tool.function !== undefined) continue;
		throw new Fault("invalid_request", `\`tools[${at}].function\` is missing.`, { param: `tools[${at}].function` });
	}
}

/** Replaces each message's parts by their known fields. The parsed body belongs to this request. */
function checkMessages(messages: ChatRequestBody["messages"], model: Model): void {
	for (let at = 0; at < messages.length; at++) {
		const message = messages[at] as ChatRequestBody["messages"][number] & { function_call?: unknown };
		const { content } = message;
		if (content === undefined || content === null) {
			const calls = message.role === "assistant" && (message.tool_calls || message.function_call);
			if (!calls) throw new Fault("invalid_request", "`content` is required.", { param: `messages[${at}].content` });
		} else if (typeof content !== "string") {
			for (let index = 0; index < content.length; index++)
				content[index] = rebuildPart(content[index], `messages[${at}].content[${index}]`, model);
		}
	}
}

/**
 * Reduces a part to the fields of its type. Servers know more types, some with URLs (`video_url`, `audio_url`) that
 * they fetch from inside the operator's network, and some look for those in parts of any type. `param` names the part
 * in Fault invalid_request.
 */
function rebuildPart(part: ContentPart | undefined, param: string, model: Model): ContentPart {
	switch (part?.type) {
		case "text":
			return { type: "text", text: textOf(part.text, param) };
		case "refusal":
			return { type: "refusal", refusal: textOf(part.refusal, param) };
		case "image_url":
			return { type: "image_url", image_url: imageOf(part.image_url, param, model) };
		case "input_audio":
			return { type: "input_audio", input_audio: audioOf(part.input_audio, param, model) };
		default:
			throw new Fault(
				"invalid_request",
				"Content parts of this type are not supported. Use `text`, `image_url`, `input_audio` or `refusal`.",
				{ param: `${param}.type` },
			);
	}
}

function textOf(value: unknown, param: string): string {
	if (typeof value !== "string") throw new Fault("invalid_request", "A text part requires `text`.", { param });
	return value;
}

function imageOf(value: unknown, param: string, model: Model): Readonly<Record<string, unknown>> {
	const { url, detail } = (typeof value === "object" && value !== null ? value : {}) as Record<string, unknown>;
	if (typeof url !== "string") throw new Fault("invalid_request", "An image part requires `image_url.url`.", { param });
	if (!model.inputModalities.has("image") || model.imageUrls === "reject")
		throw new Fault("invalid_request", "The model `{id}` does not accept images.", { values: { id: model.id }, param });
	// Servers would fetch any other URL themselves.
	if (!url.startsWith("data:") && !(model.imageUrls === "forward" && /^https?:\/\//i.test(url)))
		throw new Fault("invalid_request", "This model accepts images as `data:` URLs only.", { param });
	return typeof detail === "string" ? { url, detail } : { url };
}

function audioOf(value: unknown, param: string, model: Model): Readonly<Record<string, unknown>> {
	const { data, format } = (typeof value === "object" && value !== null ? value : {}) as Record<string, unknown>;
	if (typeof data !== "string" || typeof format !== "string")
		throw new Fault("invalid_request", "An audio part requires `input_audio.data` and `input_audio.format`.", {
			param,
		});
	if (!model.inputModalities.has("audio"))
		throw new Fault("invalid_request", `The model \`${model.id}\` does not take audio.`, { param });
	return { data, format };
}

export const chat = generatedText<ChatInput, ChatReply, ChatChunk>({
	name: "chat",
	promptField: "messages",
	readsRaw: true,
	idPrefix: "chatcmpl",
	object: { whole: "chat.completion", chunk: "chat.completion.chunk" },
	read: ({ value, raw, leftOut }, model) => readChatRequest(value, model, raw, leftOut),
	affinityOf: ({ prompt }) => chatAffinity(prompt.value as readonly unknown[]),
	whole: chatWhole,
	stream: chatStream,
});

const PREFIX_CHARS = 1_024;

/** The first two messages identify a conversation; requests with the same ones share a replica's prefix cache. */
export function chatAffinity(messages: readonly unknown[]): string {
	const start = messages.slice(0, 2).map((message) => {
		const { content } = message as { content?: unknown };
		return typeof content === "string"
			? content.slice(0, PREFIX_CHARS)
			: JSON.stringify(content ?? "").slice(0, PREFIX_CHARS);
	});
	return Bun.hash(start.join("\n")).toString(36);
}
