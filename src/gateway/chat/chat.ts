import type { ChatChunk, ChatReply } from "../../upstream/chat/chat-answer.ts";
import type { ChatCall } from "../../upstream/chat/chat-call.ts";
import { chatStream, chatWhole } from "../../upstream/chat/chat-call.ts";
import { generatedText } from "../generated-text.ts";
import { callContext } from "../serve/context.ts";
import { chatAffinity } from "./chat-affinity.ts";
import type { ChatInput } from "./chat-request.ts";
import { readChatRequest } from "./chat-request.ts";

/** POST /v1/chat/completions. */
export const chat = generatedText<ChatInput, ChatCall, ChatReply, ChatChunk>({
	name: "chat",
	promptField: "messages",
	idPrefix: "chatcmpl",
	object: { whole: "chat.completion", chunk: "chat.completion.chunk" },
	read: ({ value, raw }, model) => readChatRequest(value, model, raw),
	callOf(exchange, signal) {
		const { input, model } = exchange;
		return {
			...callContext(
				exchange,
				signal,
				model.upstreams.length > 1 ? chatAffinity(input.prompt.value as readonly unknown[]) : undefined,
			),
			fields: input.fields,
			prompt: input.prompt,
			outputLimit: input.outputTokensMax,
			n: input.choices,
		};
	},
	whole: chatWhole,
	stream: chatStream,
});
