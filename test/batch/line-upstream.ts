/** A model server of a fixed latency that records which lines it completed, and when. */
export interface LineUpstream {
	readonly url: string;
	/** By the text of the last message: the number of completions. */
	readonly executed: ReadonlyMap<string, number>;
	/** Its start and end by this process's monotonic clock; infinite without an end. */
	times(text: string): { readonly fromMs: number; readonly untilMs: number } | undefined;
	open(): number;
	stop(): Promise<void>;
}

export function startLineUpstream(options: { answerMs: number }): LineUpstream {
	const executed = new Map<string, number>();
	const times = new Map<string, { fromMs: number; untilMs: number }>();
	let open = 0;
	const server = Bun.serve({
		hostname: "127.0.0.1",
		port: 0,
		idleTimeout: 0,
		async fetch(request) {
			if (request.method !== "POST") return Response.json({ object: "list", data: [] });
			const body = (await request.json()) as { messages: { content: string }[] };
			const text = body.messages.at(-1)?.content ?? "";
			executed.set(text, (executed.get(text) ?? 0) + 1);
			const span = { fromMs: performance.now(), untilMs: Number.POSITIVE_INFINITY };
			times.set(text, span);
			open += 1;
			await Bun.sleep(options.answerMs);
			open -= 1;
			span.untilMs = performance.now();
			return Response.json({
				id: "x",
				object: "chat.completion",
				choices: [{ index: 0, message: { role: "assistant", content: "fine" }, finish_reason: "stop" }],
				usage: { prompt_tokens: 4, completion_tokens: 1, total_tokens: 5 },
			});
		},
	});
	return {
		url: `http://127.0.0.1:${server.port}/v1`,
		executed,
		times: (text) => times.get(text),
		open: () => open,
		stop: () => server.stop(true),
	};
}
