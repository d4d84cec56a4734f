import type { ChatCall } from "../../upstream/chat/chat-call.ts";
import type { Exchange } from "../exchange.ts";

const PREFIX_CHARS = 1_024;

/** The upstream's part of an exchange. */
export function callOf({ ask, model, requestId }: Exchange, signal: AbortSignal): ChatCall {
	return {
		fields: ask.fields,
		prompt: ask.messages,
		rawPrompt: ask.rawMessages,
		outputLimit: ask.outputTokensMax,
		n: ask.choices,
		signal,
		affinity: model.upstreams.length > 1 ? prefixOf(ask.messages) : undefined,
		requestId,
	};
}

/** Requests that begin alike share a replica's prefix cache: the first two messages name the conversation. */
function prefixOf(messages: readonly unknown[]): string {
	const start = messages.slice(0, 2).map((message) => {
		const { content } = message as { content?: unknown };
		return typeof content === "string"
			? content.slice(0, PREFIX_CHARS)
			: JSON.stringify(content ?? "").slice(0, PREFIX_CHARS);
	});
	return Bun.hash(start.join("\n")).toString(36);
}
