import { died } from "../call/failure.ts";
import type { AnswerStream } from "../call/stream-wire.ts";
import { asArray, asObject, type JsonObject } from "../wire-value.ts";
import type { ChatChunk, ChatChunkChoice, ChatReply, FinishReason } from "./chat-answer.ts";

interface Gathered {
	text: Record<"content" | "refusal" | "reasoning_content", string>;
	/** By index; holes where a server skipped one. */
	calls: { id: string; type: string; part: "function" | "custom"; name: string; text: string }[];
	functionCall: { name: string; arguments: string } | undefined;
	logprobs: unknown[];
	finish: FinishReason | undefined;
}

/** A whole answer by way of a stream. */
export async function collectChat(stream: Pick<AnswerStream<ChatChunk>, "next" | "usage">): Promise<ChatReply> {
	const collector = createChatCollector();
	for (let chunks = await stream.next(); chunks !== null; chunks = await stream.next()) {
		for (const chunk of chunks) collector.add(chunk);
	}
	return { ...collector.reply(), usage: stream.usage() };
}

/** Gathers the chunks of a stream into the whole answer that they make up. */
export interface ChatCollector {
	add(chunk: ChatChunk): void;
	/** Everything but usage. Throws UpstreamFailure if a choice has no finish. */
	reply(): Omit<ChatReply, "usage">;
}

export function createChatCollector(): ChatCollector {
	const choices: (Gathered | undefined)[] = [];
	let outputBytes = 0;

	function gather(choice: ChatChunkChoice): void {
		let into = choices[choice.index];
		if (into === undefined) {
			into = {
				text: { content: "", refusal: "", reasoning_content: "" },
				calls: [],
				functionCall: undefined,
				logprobs: [],
				finish: undefined,
			};
			choices[choice.index] = into;
		}
		const { delta, logprobs, finish_reason } = choice;
		for (const field of ["content", "refusal", "reasoning_content"] as const) {
			if (typeof delta[field] === "string") into.text[field] += delta[field];
		}
		for (const call of asArray(delta.tool_calls) ?? []) gatherCall(into, call as JsonObject);
		const legacy = asObject(delta.function_call);
		if (legacy !== undefined) {
			into.functionCall ??= { name: "", arguments: "" };
			into.functionCall.name += legacy.name ?? "";
			into.functionCall.arguments += legacy.arguments ?? "";
		}
		into.logprobs.push(...(asArray(asObject(logprobs)?.content) ?? []));
		if (finish_reason !== null) into.finish = finish_reason;
	}

	return {
		add(chunk) {
			outputBytes += chunk.outputBytes;
			for (const choice of chunk.choices) gather(choice);
		},
		reply: () => ({
			choices: choices.flatMap((gathered, index) => (gathered === undefined ? [] : [whole(gathered, index)])),
			outputBytes,
		}),
	};
}

function gatherCall(into: Gathered, call: JsonObject): void {
	const index = call.index as number;
	const part = call.custom === undefined ? "function" : "custom";
	const body = call[part] as JsonObject;
	const known = into.calls[index] ?? { id: String(call.id), type: String(call.type), part, name: "", text: "" };
	known.name += body.name ?? "";
	known.text += (part === "function" ? body.arguments : body.input) ?? "";
	into.calls[index] = known;
}

function whole(gathered: Gathered, index: number): ChatReply["choices"][number] {
	const { text, calls, functionCall, logprobs, finish } = gathered;
	if (finish === undefined) throw died("a choice without a finish reason");
	// `flatMap` passes over the holes.
	const toolCalls = calls.flatMap(({ id, type, part, name, text: args }): JsonObject[] => [
		{ id, type, [part]: part === "function" ? { name, arguments: args } : { name, input: args } },
	]);
	const calling = toolCalls.length > 0 || functionCall !== undefined;
	return {
		index,
		message: {
			role: "assistant",
			content: text.content === "" && calling ? null : text.content,
			refusal: text.refusal === "" ? null : text.refusal,
			...(text.reasoning_content === "" ? {} : { reasoning_content: text.reasoning_content }),
			...(toolCalls.length === 0 ? {} : { tool_calls: toolCalls }),
			...(functionCall === undefined ? {} : { function_call: functionCall }),
		},
		logprobs: logprobs.length === 0 ? null : { content: logprobs, refusal: null },
		finish_reason: finish,
	};
}
