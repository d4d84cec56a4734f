/**
 * The floor: the least that a gateway on this runtime can do. It looks the key up, reads and parses both bodies, and
 * passes the texts on unchanged, without credit, limits, deadlines or a journal.
 *
 * With READS=1 it reads the events of a stream, as a gateway that counts must: it parses each and writes it with
 * another head. This is the floor of counting; without READS it is the floor of relaying.
 *
 *     UPSTREAM=http://127.0.0.1:9000/v1 KEYS=a,b bun test/bench/bare-pass-through.ts        prints `{"port":…}`
 */
const upstream = `${process.env.UPSTREAM}/chat/completions`;
const keys = new Map((process.env.KEYS ?? "").split(",").map((key) => [`Bearer ${key}`, true]));
const REQUEST_HEADERS = { "content-type": "application/json" };
const READS = process.env.READS === "1";
const STREAM_HEADERS = { "content-type": "text/event-stream" };

const server = Bun.serve({
	hostname: "127.0.0.1",
	port: 0,
	idleTimeout: 0,
	maxRequestBodySize: 64 * 1024 * 1024,
	development: false,
	async fetch(request) {
		if (!keys.has(request.headers.get("authorization") ?? "")) return new Response(null, { status: 401 });
		const text = await request.text();
		const { stream } = JSON.parse(text) as { stream?: boolean };
		const answer = await fetch(upstream, { method: "POST", headers: REQUEST_HEADERS, body: text, signal: null });
		if (stream === true) return new Response(READS ? reread(answer) : answer.body, { headers: STREAM_HEADERS });
		const answerText = await answer.text();
		JSON.parse(answerText);
		return new Response(answerText, { status: answer.status, headers: REQUEST_HEADERS });
	},
});
process.stdout.write(`${JSON.stringify({ port: server.port })}\n`);

/** Each read contains whole events: this upstream never splits an event. */
function reread(answer: Response): ReadableStream<string> {
	const reader = (answer.body as ReadableStream<Uint8Array>).getReader();
	return new ReadableStream<string>({
		async pull(controller) {
			const { done, value } = await reader.read();
			if (done) controller.close();
			else controller.enqueue(rewritten(Buffer.from(value.buffer, value.byteOffset, value.byteLength)));
		},
		cancel: (reason) => reader.cancel(reason),
	});
}

function rewritten(bytes: Buffer): string {
	let text = "";
	let from = 0;
	for (let to = bytes.indexOf(10); to !== -1; to = bytes.indexOf(10, from)) {
		if (to > from) {
			const payload = bytes.toString("utf8", from + 6, to);
			text += payload === "[DONE]" ? "data: [DONE]\n\n" : `data: ${eventOf(payload)}\n\n`;
		}
		from = to + 1;
	}
	return text;
}

function eventOf(payload: string): string {
	const { choices, usage } = JSON.parse(payload) as { choices: unknown; usage?: unknown };
	return JSON.stringify({ id: "chatcmpl-1", object: "chat.completion.chunk", created: 1, model: "m", choices, usage });
}
