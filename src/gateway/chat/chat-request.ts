import type { Static, TSchema } from "@sinclair/typebox";
import { Type } from "@sinclair/typebox";
import { TypeCompiler } from "@sinclair/typebox/compiler";
import { Fault } from "../../base/fault.ts";
import type { Model } from "../../catalog/model.ts";
import { OWN_FIELDS } from "../../catalog/request-fields.ts";
import { rebuildPart } from "./content-part.ts";
import { rawMemberOf } from "./raw-member.ts";

/** Absent and null are the same everywhere in this interface. */
const optional = <T extends TSchema>(schema: T) => Type.Optional(Type.Union([schema, Type.Null()]));

const ContentPart = Type.Object({ type: Type.String() }, { additionalProperties: true });

const Message = Type.Object(
	{
		role: Type.Union([
			Type.Literal("system"),
			Type.Literal("user"),
			Type.Literal("assistant"),
			Type.Literal("tool"),
			Type.Literal("developer"),
			Type.Literal("function"),
		]),
		content: Type.Optional(Type.Union([Type.String(), Type.Array(ContentPart), Type.Null()])),
		name: optional(Type.String()),
		tool_call_id: optional(Type.String()),
		tool_calls: optional(Type.Array(Type.Object({}, { additionalProperties: true }))),
	},
	{ additionalProperties: true },
);

/** The body of POST /v1/chat/completions. Fields that it does not name are dropped unless the deployment lists them. */
export const ChatRequestBody = Type.Object(
	{
		model: Type.String({ minLength: 1, description: "ID of a connected deployment." }),
		messages: Type.Array(Message, { minItems: 1 }),
		stream: optional(Type.Boolean()),
		stream_options: optional(Type.Object({ include_usage: optional(Type.Boolean()) }, { additionalProperties: true })),
		max_tokens: optional(Type.Integer({ minimum: 1 })),
		max_completion_tokens: optional(Type.Integer({ minimum: 1 })),
		n: optional(Type.Integer({ minimum: 1, maximum: 128 })),
		temperature: optional(Type.Number({ minimum: 0, maximum: 2 })),
		top_p: optional(Type.Number({ minimum: 0, maximum: 1 })),
		frequency_penalty: optional(Type.Number({ minimum: -2, maximum: 2 })),
		presence_penalty: optional(Type.Number({ minimum: -2, maximum: 2 })),
		seed: optional(Type.Integer({ minimum: Number.MIN_SAFE_INTEGER, maximum: Number.MAX_SAFE_INTEGER })),
		stop: optional(Type.Union([Type.String(), Type.Array(Type.String(), { minItems: 1, maxItems: 16 })])),
		logprobs: optional(Type.Boolean()),
		top_logprobs: optional(Type.Integer({ minimum: 0, maximum: 20 })),
		logit_bias: optional(Type.Record(Type.String(), Type.Number({ minimum: -100, maximum: 100 }))),
		tools: optional(Type.Array(Type.Object({ type: Type.String() }, { additionalProperties: true }))),
		tool_choice: optional(
			Type.Union([Type.String(), Type.Object({ type: Type.String() }, { additionalProperties: true })]),
		),
		parallel_tool_calls: optional(Type.Boolean()),
		response_format: optional(
			Type.Union([
				Type.Object({ type: Type.Literal("text") }, { additionalProperties: true }),
				Type.Object({ type: Type.Literal("json_object") }, { additionalProperties: true }),
				Type.Object(
					{
						type: Type.Literal("json_schema"),
						json_schema: Type.Object({ name: Type.String() }, { additionalProperties: true }),
					},
					{ additionalProperties: true },
				),
			]),
		),
		reasoning_effort: optional(Type.String()),
		user: optional(Type.String()),
	},
	{ additionalProperties: true },
);
export type ChatRequestBody = Static<typeof ChatRequestBody>;

const checkBody = TypeCompiler.Compile(ChatRequestBody);

/** What a chat request asks for, checked and cut to what its deployment honours. */
export interface ChatRequest {
	readonly messages: readonly unknown[];
	/** The messages as the client wrote them, where they may go on like that. */
	readonly rawMessages: string | undefined;
	readonly stream: boolean;
	readonly includeUsage: boolean;
	readonly choices: number;
	/** The most tokens that one choice may generate: the client's word or the model's, whichever is less. */
	readonly outputTokensMax: number;
	/** What goes upstream beside model, output limit, choices and stream. */
	readonly fields: Readonly<Record<string, unknown>>;
	/** What the template renders into the prompt beside the messages: tool schemas and such. */
	readonly rendered: readonly unknown[];
	/** Optional fields that the deployment does not honour. */
	readonly ignored: readonly string[];
}

const RENDERED = ["tools", "functions", "response_format", "tool_choice", "documents", "chat_template_kwargs"];

/** The model's name, before anything else is known. */
export function modelOf(body: Readonly<Record<string, unknown>>): string {
	if (typeof body.model !== "string" || body.model === "")
		throw new Fault("invalid_request", "`model` must be the ID of a model: see GET /v1/models.", { param: "model" });
	return body.model;
}

/** `text` is what `body` was read from, if it is at hand. Faults: invalid_request and unsupported_parameter, each naming the field. */
export function readChatRequest(body: Readonly<Record<string, unknown>>, model: Model, text = ""): ChatRequest {
	if (!checkBody.Check(body)) throw fieldFault(body);
	if (body.stream_options && body.stream !== true) {
		throw new Fault("invalid_request", "`stream_options` is only allowed when `stream` is true.", {
			param: "stream_options",
		});
	}
	checkMessages(body.messages, model);
	const limits = model.parameters.has("max_tokens") || model.parameters.has("max_completion_tokens");
	const asked = limits
		? (body.max_completion_tokens ?? body.max_tokens ?? model.maxOutputTokens)
		: model.maxOutputTokens;
	const { fields, ignored } = honoured(body, model, limits);
	return {
		messages: body.messages,
		rawMessages: text.length >= RAW_CHARS_MIN && text.includes(ESCAPE) ? rawMessagesOf(body.messages, text) : undefined,
		stream: body.stream === true,
		includeUsage: body.stream_options?.include_usage === true,
		choices: model.parameters.has("n") ? (body.n ?? 1) : 1,
		outputTokensMax: Math.min(asked, model.maxOutputTokens),
		fields,
		rendered: RENDERED.filter((name) => name in fields).map((name) => fields[name]),
		ignored,
	};
}

function honoured(
	body: Readonly<Record<string, unknown>>,
	model: Model,
	limits: boolean,
): { fields: Record<string, unknown>; ignored: string[] } {
	const fields: Record<string, unknown> = { messages: body.messages };
	const ignored: string[] = [];
	for (const name in body) {
		const value = body[name];
		if (value === null || value === undefined) continue;
		if (OWN_FIELDS.chat.has(name)) {
			const unheard =
				(name === "n" && value !== 1 && !model.parameters.has("n")) || (name.startsWith("max_") && !limits);
			if (unheard) ignored.push(name);
		} else if (model.parameters.has(name)) fields[name] = value;
		else ignored.push(name);
	}
	if (ignored.length > 0 && model.unsupportedParameters === "reject") {
		const name = ignored[0] as string;
		throw new Fault("unsupported_parameter", `The model \`${model.id}\` does not support this parameter.`, {
			param: name.slice(0, 64),
		});
	}
	return { fields, ignored };
}

/** From here on it takes less to find the messages in the body than to write them anew. */
const RAW_CHARS_MIN = 16 * 1024;
/** The runtime writes a string without escapes as fast as it copies it; with a single one, a megabyte takes 1 ms more. */
const ESCAPE = "\\";
const PLAIN_FIELDS = new Set(["role", "content", "name", "tool_call_id"]);

/**
 * Plain messages go on as they came. Not those with parts or fields that other readers may take for something else, and
 * none with a name twice: a server may read the one that was neither checked nor measured here.
 */
function rawMessagesOf(messages: ChatRequestBody["messages"], text: string): string | undefined {
	let names = 0;
	for (const message of messages) {
		for (const name in message) {
			const value = (message as Record<string, unknown>)[name];
			if (!PLAIN_FIELDS.has(name) || (typeof value !== "string" && value !== null)) return undefined;
			names += 1;
		}
	}
	const raw = rawMemberOf(text, "messages");
	return raw?.names === names ? raw.text : undefined;
}

/** The parts of a message are replaced by what is known of them: the body was parsed for this request alone. */
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

/** Names the first field that is wrong, in OpenAI's notation. */
function fieldFault(body: unknown): Fault {
	const error = checkBody.Errors(body).First();
	const param = error ? paramOf(error.path) : null;
	return new Fault(
		"invalid_request",
		param ? `\`${param}\` is missing or has a value that is not allowed.` : "The request is malformed.",
		{ param },
	);
}

/** `/messages/0/role` → `messages[0].role`; names of the client's making are cut. */
export function paramOf(pointer: string): string | null {
	const parts = pointer
		.split("/")
		.slice(1)
		.map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"));
	if (parts.length === 0) return null;
	return parts
		.map((part, index) => (/^\d+$/.test(part) ? `[${part}]` : `${index > 0 ? "." : ""}${part}`))
		.join("")
		.slice(0, 128);
}

const HEADER_NAMES_MAX = 20;

/** The value of `x-ignored-parameters`: names that are safe in a header, at most 20, then a count; undefined if none. */
export function ignoredHeader(ignored: readonly string[]): string | undefined {
	if (ignored.length === 0) return undefined;
	const shown = ignored.filter((name) => /^[A-Za-z0-9_.-]{1,64}$/.test(name)).slice(0, HEADER_NAMES_MAX);
	const more = ignored.length - shown.length;
	return [...shown, ...(more > 0 ? [`+${more}`] : [])].join(", ");
}
