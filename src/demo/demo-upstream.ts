import type { ModelSpec } from "../catalog/model.ts";
import { cutAtStop, type DemoMessage, demoAnswer, demoPromptTokens, demoTokens } from "./demo-text.ts";
import { demoModelSpec } from "./found-model.ts";

/** The built-in model server: real HTTP on a loopback port of its own, so that nothing of the service is bypassed. */
export interface DemoUpstream {
	/** With `/v1`. */
	readonly url: string;
	readonly model: ModelSpec;
	stop(): Promise<void>;
}

export const DEMO_MODEL_ID = "tollgate-demo";
const CONTEXT_LENGTH = 8192;
const MAX_OUTPUT_TOKENS = 1024;
const TOKEN_DELAY_MS = 15;

interface Answer {
	readonly id: string;
	readonly created: number;
	readonly pieces: readonly string[];
	readonly finishReason: "stop" | "length";
	readonly usage: { prompt_tokens: number; completion_tokens: number; total_tokens: number };
}

/** `tokenDelayMs`: the pause before each streamed token, so that a stream looks like one. */
export function startDemoUpstream(options: { tokenDelayMs?: number } = {}): DemoUpstream {
	const tokenDelayMs = options.tokenDelayMs ?? TOKEN_DELAY_MS;
	const server = Bun.serve({
		hostname: "127.0.0.1",
		port: 0,
		idleTimeout: 60,
		development: false,
		fetch(request) {
			const call = `${request.method} ${new URL(request.url).pathname}`;
			if (call === "POST /v1/chat/completions") return chat(request, tokenDelayMs);
			if (call === "GET /v1/models")
				return Response.json({ object: "list", data: [{ id: DEMO_MODEL_ID, object: "model" }] });
			return refuse(404, "There is nothing here.");
		},
		error: () => refuse(500, "The demo model failed."),
	});
	const url = `http://127.0.0.1:${server.port}/v1`;
	return {
		url,
		model: demoModelSpec({
			id: DEMO_MODEL_ID,
			name: "Tollgate demo",
			kind: "chat",
			modes: ["chat"],
			contextLength: CONTEXT_LENGTH,
			maxOutputTokens: MAX_OUTPUT_TOKENS,
			parameters: ["max_tokens", "max_completion_tokens", "stop"],
			upstream: { url, model: DEMO_MODEL_ID, dialect: "openai" },
		}),
		stop: () => server.stop(true),
	};
}

async function chat(request: Request, tokenDelayMs: number): Promise<Response> {
	const body = (await request.json().catch(() => null)) as Record<string, unknown> | null;
	if (body === null || !Array.isArray(body.messages)) return refuse(400, "`messages` is missing.");
	const answer = answerTo(body, body.messages.map(messageOf));
	return body.stream === true ? streamed(answer, tokenDelayMs) : whole(answer);
}

function answerTo(body: Record<string, unknown>, messages: readonly DemoMessage[]): Answer {
	const promptTokens = demoPromptTokens(messages);
	const stops = [body.stop ?? []].flat().filter((stop) => typeof stop === "string");
	const all = demoTokens(cutAtStop(demoAnswer(messages, promptTokens), stops));
	const asked = body.max_completion_tokens ?? body.max_tokens;
	const pieces = all.slice(0, typeof asked === "number" ? asked : MAX_OUTPUT_TOKENS);
	return {
		id: `chatcmpl-demo-${Bun.randomUUIDv7()}`,
		created: Math.floor(Date.now() / 1000),
		pieces,
		finishReason: pieces.length < all.length ? "length" : "stop",
		usage: {
			prompt_tokens: promptTokens,
			completion_tokens: pieces.length,
			total_tokens: promptTokens + pieces.length,
		},
	};
}

function whole({ id, created, pieces, finishReason, usage }: Answer): Response {
	const message = { role: "assistant", content: pieces.join("") };
	const choices = [{ index: 0, message, finish_reason: finishReason }];
	return Response.json({ id, object: "chat.completion", created, model: DEMO_MODEL_ID, choices, usage });
}

/** Every event carries the usage so far, so that who leaves early is charged for what was generated until then. */
function streamed(answer: Answer, tokenDelayMs: number): Response {
	const encoder = new TextEncoder();
	const { id, created, pieces, finishReason, usage } = answer;
	const event = (choices: unknown[], completionTokens: number) => {
		const running = {
			...usage,
			completion_tokens: completionTokens,
			total_tokens: usage.prompt_tokens + completionTokens,
		};
		const record = { id, object: "chat.completion.chunk", created, model: DEMO_MODEL_ID, choices, usage: running };
		return encoder.encode(`data: ${JSON.stringify(record)}\n\n`);
	};
	let at = 0;
	return new Response(
		new ReadableStream<Uint8Array>({
			async pull(controller) {
				if (at < pieces.length) {
					if (at > 0) await Bun.sleep(tokenDelayMs);
					const delta = { ...(at === 0 ? { role: "assistant" } : {}), content: pieces[at] };
					at += 1;
					controller.enqueue(event([{ index: 0, delta, finish_reason: null }], at));
					return;
				}
				controller.enqueue(event([{ index: 0, delta: {}, finish_reason: finishReason }], at));
				controller.enqueue(event([], at));
				controller.enqueue(encoder.encode("data: [DONE]\n\n"));
				controller.close();
			},
		}),
		{ headers: { "content-type": "text/event-stream" } },
	);
}

function messageOf(message: unknown): DemoMessage {
	const { role, content } = (message ?? {}) as { role?: unknown; content?: unknown };
	const parts = Array.isArray(content) ? content : [{ text: content }];
	const text = parts.map((part) => (part as { text?: unknown } | null)?.text).filter((one) => typeof one === "string");
	return { role: typeof role === "string" ? role : "user", text: text.join("\n") };
}

function refuse(status: number, message: string): Response {
	return Response.json({ error: { message, type: "invalid_request_error", param: null, code: null } }, { status });
}
