import { type Static, Type } from "@sinclair/typebox";
import { Fault } from "../../base/fault.ts";
import type { Model, ReasoningHistory } from "../../catalog/model.ts";
import { DIALECTS } from "../../upstream/dialects.ts";
import { nullish, openObject } from "../request-fields.ts";
import type { ContentPart } from "./passed-messages.ts";

const PARTS_MAX = 4_096;
const CALLS_MAX = 1_024;

const Part = openObject({ type: Type.String() });

export const Message = openObject({
	role: Type.Union([
		Type.Literal("system"),
		Type.Literal("user"),
		Type.Literal("assistant"),
		Type.Literal("tool"),
		Type.Literal("developer"),
		Type.Literal("function"),
	]),
	content: Type.Optional(Type.Union([Type.String(), Type.Array(Part, { maxItems: PARTS_MAX }), Type.Null()])),
	name: nullish(Type.String()),
	tool_call_id: nullish(Type.String()),
	tool_calls: nullish(Type.Array(openObject({}), { maxItems: CALLS_MAX })),
});

interface Call {
	name?: unknown;
	arguments?: unknown;
}
type Message = Static<typeof Message> & { function_call?: Call | null } & Record<string, unknown>;

/**
 * Changes messages to what the model's servers accept: removes unknown fields of parts, adds a text to answers without
 * one, puts reasoning into the field that the servers read, and renames roles that the model's template lacks. Modifies
 * the parsed body. Returns false if a value changed under the same name. Fault invalid_request, naming the field.
 */
export function adaptMessages(messages: Message[], model: Model): boolean {
	let isSame = true;
	const history = reasoningHistoryOf(model);
	for (let at = 0; at < messages.length; at++) {
		const message = messages[at] as Message;
		if (message.role === "assistant") {
			isSame = fitAnswer(message) && isSame;
			isSame = fitReasoning(message, history) && isSame;
		} else if (message.role === "developer" && !keepsDeveloper(model)) {
			message.role = "system";
			isSame = false;
		} else if (message.role === "function" && !speaksOpenAi(model)) {
			replaceFunctionCall(messages, at);
			isSame = false;
		}
		if (message.role === "tool") isSame = fitResult(message) && isSame;
		const { content } = message;
		if (content === undefined || content === null) {
			if (message.role !== "assistant")
				throw new Fault("invalid_request", "`content` is required.", { param: `messages[${at}].content` });
		} else if (typeof content !== "string") {
			for (let index = 0; index < content.length; index++)
				content[index] = rebuildPart(content[index], `messages[${at}].content[${index}]`, model);
		}
	}
	return joinSystem(messages, model) && isSame;
}

/** Replaces a tool result that is a list of one text by the text: many servers refuse a list or ignore it. */
function fitResult(message: Message): boolean {
	const [part, ...others]: readonly (ContentPart | undefined)[] = Array.isArray(message.content) ? message.content : [];
	if (part?.type !== "text" || typeof part.text !== "string" || others.length > 0) return true;
	message.content = part.text;
	return false;
}

/** Joins the `system` messages at the start to one, because templates of several model families refuse a second one. */
function joinSystem(messages: Message[], model: Model): boolean {
	// Checked before `findIndex`, because most chats have no second `system` message and the search allocates a closure.
	if (messages[1]?.role !== "system" || speaksOpenAi(model)) return true;
	const other = messages.findIndex(
		({ role, content, name }) => role !== "system" || typeof content !== "string" || name,
	);
	const count = other < 0 ? messages.length : other;
	if (count < 2) return true;
	const content = messages.slice(0, count).map((message) => message.content);
	messages.splice(0, count, { role: "system", content: content.join("\n\n") });
	return false;
}

/**
 * Adds what servers require of an assistant message: a text if it has no calls, and the arguments of its calls. Clients
 * send back assistant messages without text: refusals, audio, and reasoning that `max_tokens` cut off.
 */
function fitAnswer(message: Message): boolean {
	let isSame = !fitArguments(message.function_call);
	for (const call of message.tool_calls ?? []) isSame = !fitArguments((call as { function?: Call }).function) && isSame;
	if (message.tool_calls?.length === 0) delete message.tool_calls;
	const { content } = message;
	const hasText = content !== undefined && content !== null && content.length > 0;
	if (hasText || content === "" || message.tool_calls || message.function_call) return isSame;
	message.content = "";
	return false;
}

const REASONING_FIELDS = ["reasoning_content", "reasoning", "reasoning_details"] as const;

/** Moves an assistant message's reasoning to the field that its servers read: hosted servers refuse other fields. */
function fitReasoning(message: Message, history: ReasoningHistory): boolean {
	let isSame = true;
	for (const field of REASONING_FIELDS) {
		const given = message[field];
		if (given === undefined || field === history) continue;
		if (field === "reasoning_details" && history !== "omit") continue;
		if (given && history !== "omit") message[history] ||= given;
		delete message[field];
		isSame = false;
	}
	return isSame;
}

/** Replaces a call's incomplete arguments by `{}`: servers would refuse every later request. True if it did. */
function fitArguments(call: Call | null | undefined): boolean {
	if (typeof call !== "object" || call === null) return false;
	const { arguments: given } = call;
	// Checks only the last character, because parsing takes long: arguments cut off by `max_tokens` rarely end with `}`.
	if (typeof given === "string" && given.trimEnd().endsWith("}")) return false;
	call.arguments = JSON.stringify(typeof given === "string" ? {} : (given ?? {}));
	return true;
}

/** True if all of the model's servers have the dialect `openai`, which supports deprecated roles. */
function speaksOpenAi({ upstreams }: Model): boolean {
	return upstreams.every(({ dialect }) => dialect === "openai");
}

/** If servers have several dialects, the field is `reasoning_content`, unless all of them read `reasoning`. */
function reasoningHistoryOf({ reasoningHistory, upstreams }: Model): ReasoningHistory {
	if (reasoningHistory !== undefined) return reasoningHistory;
	return upstreams.every(({ dialect }) => DIALECTS[dialect].reasoningField === "reasoning")
		? "reasoning"
		: "reasoning_content";
}

/** True if the model's template supports the role `developer`. Other templates refuse it or drop its message. */
function keepsDeveloper(model: Model): boolean {
	return model.developerRole === undefined ? speaksOpenAi(model) : model.developerRole === "keep";
}

/** Converts a deprecated function call and its result to a tool call and a tool result. */
function replaceFunctionCall(messages: Message[], at: number): void {
	const [before, message] = [messages[at - 1], messages[at] as Message];
	const call = before?.role === "assistant" ? before.function_call : undefined;
	if (before === undefined || !call || typeof call.name !== "string" || call.name !== message.name)
		throw new Fault(
			"invalid_request",
			"A message of role `function` must follow the `function_call` of its name. Use `tool_calls` and role `tool`.",
			{ param: `messages[${at}].role` },
		);
	const id = `call_${at}`;
	before.tool_calls = [{ id, type: "function", function: { name: call.name, arguments: call.arguments } }];
	delete before.function_call;
	message.role = "tool";
	message.tool_call_id = id;
}

/**
 * Reduces a content part to the fields of its type. Servers also accept fields with URLs (`video_url`, `audio_url`) and
 * would fetch them from inside the operator's network. `param`: the part's path, for Fault invalid_request.
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
		throw new Fault(
			"invalid_request",
			"The model `{id}` does not accept images. Choose a model with image input: see GET /v1/models.",
			{ values: { id: model.id }, param },
		);
	// Refuses other image URLs, because the model server would fetch them from inside the operator's network.
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
