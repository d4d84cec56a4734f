import type { NanoUsd } from "../../../money/nano-usd.ts";
import type { ModelView } from "../../api.ts";
import type { ToolCall } from "../../chat-stream.ts";
import { t } from "../../texts.tsx";

/** State of a conversation with a model, and how it becomes a request body. */

/** Settings as typed; the request omits empty ones, so the model's default applies. `tools` and `schema` are JSON. */
export const FRESH_SETUP = { system: "", temperature: "", topP: "", maxTokens: "1024", tools: "", schema: "" };
export type ChatSetup = Readonly<typeof FRESH_SETUP>;

/** A message's image as a `data:` URL. */
export interface MessageImage {
	readonly name: string;
	readonly url: string;
}

export interface AnswerStats {
	readonly model: string;
	readonly requestId: string | null;
	readonly promptTokens: number | null;
	readonly completionTokens: number | null;
	readonly costNanoUsd: NanoUsd | null;
	readonly firstTokenMs: number | null;
	readonly totalMs: number;
	readonly stopped: boolean;
}

export interface QuestionTurn {
	readonly role: "user";
	readonly content: string;
	readonly pictures: readonly MessageImage[];
}

export interface AnswerTurn {
	readonly role: "assistant";
	readonly content: string;
	readonly thought: string;
	readonly toolCalls: readonly ToolCall[];
	readonly facts?: AnswerStats;
	readonly error?: string;
}

export interface ToolTurn {
	readonly role: "tool";
	readonly callId: string;
	readonly name: string;
	readonly content: string;
}

/** A message, answer or tool result. Turns are immutable; a streaming answer replaces the last turn. */
export type Turn = QuestionTurn | AnswerTurn | ToolTurn;

export const NO_ANSWER: AnswerTurn = { role: "assistant", content: "", thought: "", toolCalls: [] };

/** Tool calls of the last answer, to which the user must reply before the next message. */
export function unansweredCalls(turns: readonly Turn[]): readonly ToolCall[] {
	const last = turns.at(-1);
	return last?.role === "assistant" && last.facts !== undefined ? last.toolCalls : [];
}

/** Returns the request body, without parameters that the model does not support. */
export function chatBody(model: ModelView, turns: readonly Turn[], setup: ChatSetup) {
	const takes = (name: string) => model.parameters.includes(name);
	const system = setup.system.trim();
	const messages = turns.map(messageOf);
	const tools = takes("tools") ? readTools(setup.tools).value : undefined;
	const schema = takes("response_format") ? readSchema(setup.schema).value : undefined;
	return {
		model: model.id,
		messages: system === "" ? messages : [{ role: "system", content: system }, ...messages],
		...(tools ? { tools } : {}),
		...(schema
			? { response_format: { type: "json_schema", json_schema: { name: "answer", strict: true, schema } } }
			: {}),
		...(takes("temperature") && setup.temperature !== "" ? { temperature: Number(setup.temperature) } : {}),
		...(takes("top_p") && setup.topP !== "" ? { top_p: Number(setup.topP) } : {}),
		...(setup.maxTokens === "" ? {} : { max_tokens: Number(setup.maxTokens) }),
	};
}

function messageOf(turn: Turn): object {
	if (turn.role === "tool") return { role: "tool", tool_call_id: turn.callId, content: turn.content };
	if (turn.role === "user") {
		if (turn.pictures.length === 0) return { role: "user", content: turn.content };
		const pictures = turn.pictures.map(({ url }) => ({ type: "image_url", image_url: { url } }));
		return { role: "user", content: [{ type: "text", text: turn.content }, ...pictures] };
	}
	if (turn.toolCalls.length === 0) return { role: "assistant", content: turn.content };
	const calls = turn.toolCalls.map(({ id, name, input }) => ({
		id,
		type: "function",
		function: { name, arguments: input },
	}));
	return { role: "assistant", content: turn.content, tool_calls: calls };
}

/** Result of parsing a JSON field: a value, an error text, or neither if the field is empty. */
export interface ParsedJson<T> {
	readonly value?: T;
	readonly problem?: string;
}

export function readTools(text: string): ParsedJson<readonly object[]> {
	const { value, problem } = readJson(text);
	if (value === undefined) return problem === undefined ? {} : { problem };
	if (!Array.isArray(value) || value.length === 0) return { problem: t("Enter a list of tools: […].") };
	const bad = value.findIndex(
		(tool) => !(isObject(tool) && isObject(tool.function) && typeof tool.function.name === "string"),
	);
	return bad === -1 ? { value } : { problem: t("Tool {bad} has no function name.", { bad: bad + 1 }) };
}

export function readSchema(text: string): ParsedJson<object> {
	const { value, problem } = readJson(text);
	if (value === undefined) return problem === undefined ? {} : { problem };
	return isObject(value) ? { value } : { problem: t("The schema must be a JSON object: {form}.", { form: "{…}" }) };
}

function readJson(text: string): ParsedJson<unknown> {
	if (text.trim() === "") return {};
	try {
		return { value: JSON.parse(text) as unknown };
	} catch (error) {
		return { problem: t("Invalid JSON: {message}", { message: (error as Error).message }) };
	}
}

export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
	return typeof value === "object" && value !== null && !Array.isArray(value);
}
