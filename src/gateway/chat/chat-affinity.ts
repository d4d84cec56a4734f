const PREFIX_CHARS = 1_024;

/** Requests that begin alike share a replica's prefix cache: the first two messages name the conversation. */
export function chatAffinity(messages: readonly unknown[]): string {
	const start = messages.slice(0, 2).map((message) => {
		const { content } = message as { content?: unknown };
		return typeof content === "string"
			? content.slice(0, PREFIX_CHARS)
			: JSON.stringify(content ?? "").slice(0, PREFIX_CHARS);
	});
	return Bun.hash(start.join("\n")).toString(36);
}
