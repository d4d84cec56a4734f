import type { ChatChunk, ChatReply } from "../../upstream/chat/chat-answer.ts";
import { chatStream, chatWhole } from "../../upstream/chat/chat-call.ts";
import { generatedText } from "../generated-text.ts";
import { chatAffinity } from "./chat-affinity.ts";
import type { ChatInput } from "./chat-request.ts";
import { readChatRequest } from "./chat-request.ts";

/** POST /v1/chat/completions. */
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
