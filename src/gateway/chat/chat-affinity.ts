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
