/** Two model servers: one answers every request well, the other with mutated bytes. */
import type { Random } from "../support/random.ts";
import { startEndpoints } from "../support/upstream-endpoints.ts";
import { startUpstream } from "../support/upstream-server.ts";
import { RECORDINGS } from "../wire/recording.ts";
import { mutated } from "./mutate.ts";
import { TARGETS } from "./targets.ts";

export interface Servers {
	readonly goodUrl: string;
	readonly lyingUrl: string;
	readonly answers: () => number;
	stop(): Promise<void>;
}

const USAGES = [
	{ prompt_tokens: 7, completion_tokens: 2, total_tokens: 9, input_tokens: 7, output_tokens: 2, seconds: 3 },
	{ prompt_tokens: 7, completion_tokens: 2 ** 31 - 1, input_tokens: 2 ** 40, output_tokens: 1, seconds: 1e9 },
	undefined,
];
const STATUSES = [206, 204, 301, 400, 401, 404, 413, 422, 429, 500, 503, 529];
const TYPES = ["application/json", "text/event-stream", "text/plain", ""];

export function startServers(random: Random): Servers {
	const chats = startUpstream();
	const others = startEndpoints("openai");
	const plain = { hostname: "127.0.0.1", port: 0, idleTimeout: 0, development: false } as const;
	let answers = 0;

	const good = Bun.serve({
		...plain,
		async fetch(request) {
			const { pathname } = new URL(request.url);
			const base = pathname.endsWith("/chat/completions") || request.method !== "POST" ? chats.url : others.url;
			const body = request.method === "POST" ? await request.arrayBuffer() : null;
			const answer = await fetch(base.replace("/v1", pathname), {
				method: request.method,
				headers: request.headers,
				body,
			});
			return new Response(answer.body, { status: answer.status, headers: answer.headers });
		},
	});

	function lie(path: string, streamed: boolean): Response {
		const chat = path.endsWith("/completions") && streamed;
		const recorded = RECORDINGS.filter(({ endpoint }) =>
			path.endsWith(endpoint === "chat" ? "/chat/completions" : "/v1/completions"),
		);
		const alike = TARGETS.filter((target) => target.path === path && target.name.includes("streamed") === streamed);
		const made = alike.length === 0 ? undefined : random.pick(alike).answer(random.pick(USAGES));
		const isRecorded = chat && recorded.length > 0 && random.chance(0.7);
		const bytes = isRecorded ? random.pick(recorded).bytes : Buffer.from(made?.body ?? "{}");
		const type = isRecorded ? "text/event-stream" : (made?.contentType ?? "application/json");
		answers += 1;
		const status = random.chance(0.15) ? random.pick(STATUSES) : 200;
		return new Response(status === 204 ? null : mutated(bytes, random), {
			status,
			headers: { "content-type": random.chance(0.1) ? random.pick(TYPES) : type },
		});
	}

	const lying = Bun.serve({
		...plain,
		async fetch(request) {
			if (request.method !== "POST") return Response.json({ object: "list", data: [] });
			const streamed = /"stream":true|name="stream"\r\n\r\ntrue/.test(await request.text());
			return lie(new URL(request.url).pathname, streamed);
		},
	});
	return {
		goodUrl: `http://127.0.0.1:${good.port}/v1`,
		lyingUrl: `http://127.0.0.1:${lying.port}/v1`,
		answers: () => answers,
		async stop() {
			await Promise.all([good.stop(true), lying.stop(true), chats.stop(), others.stop()]);
		},
	};
}
