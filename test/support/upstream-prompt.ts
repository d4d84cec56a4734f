import { wordsOf } from "./upstream-reply.ts";

/** The echoing upstream's count of prompt tokens. */
export function wordCount(body: Record<string, unknown>): number {
	const messages = Array.isArray(body.messages) ? body.messages : [];
	return messages.reduce((sum, message) => sum + 3 + wordsOf(textOf(message)).length, 0);
}

export function lastText(body: Record<string, unknown>): string {
	return Array.isArray(body.messages) ? textOf(body.messages.at(-1)) : "";
}

function textOf(message: unknown): string {
	const content = (message as { content?: unknown } | undefined)?.content;
	if (typeof content === "string") return content;
	return Array.isArray(content) ? content.map((part) => part?.text ?? "").join(" ") : "";
}
