/**
 * The floor: the least that a gateway on this runtime can do. One look-up of the key, both bodies read and parsed, the
 * texts passed on as they came. No credit, no limits, no deadlines, no journal.
 *
 *     UPSTREAM=http://127.0.0.1:9000/v1 KEYS=a,b bun test/bench/bare-pass-through.ts        prints `{"port":…}`
 */
const upstream = `${process.env.UPSTREAM}/chat/completions`;
const keys = new Map((process.env.KEYS ?? "").split(",").map((key) => [`Bearer ${key}`, true]));
const REQUEST_HEADERS = { "content-type": "application/json" };
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
		if (stream === true) return new Response(answer.body, { headers: STREAM_HEADERS });
		const answerText = await answer.text();
		JSON.parse(answerText);
		return new Response(answerText, { status: answer.status, headers: REQUEST_HEADERS });
	},
});
process.stdout.write(`${JSON.stringify({ port: server.port })}\n`);
