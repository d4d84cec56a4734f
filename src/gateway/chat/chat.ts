import type { ChatChunk, ChatReply } from "../../upstream/chat/chat-answer.ts";
import { chatStream, chatWhole } from "../../upstream/chat/chat-call.ts";
import { generatedText } from "../generated-text.ts";
import { type ChatInput, readChatRequest } from "./chat-request.ts";

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
